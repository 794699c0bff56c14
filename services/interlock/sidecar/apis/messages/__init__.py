"""Anthropic's Messages API (API-2): its requests become chat requests, released completions become its messages and events.

Modules are imported by the first request: a sidecar that nobody asks this way holds none of them.
"""
