"""Clients of all languages against one mesh."""
