"""The wire format of OpenAI chat: request by allow-list, completion written anew, strict JSON, server-sent events.

The lowest room: every other room may import it.
"""
