"""The ways in: OpenAI over HTTP, gRPC, batch and hierarchical calls, sessions, and the release of held answers.

Only `wiring.py` imports it. Every front goes through `guard.py`.
"""
