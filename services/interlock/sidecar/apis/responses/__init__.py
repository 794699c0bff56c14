"""OpenAI's Responses API: its items become a chat request, a judged completion becomes its answer object or its events (API-1).

``adapter`` is what the fronts see. It imports the rest at the first request, because many sidecars never serve one.
"""
