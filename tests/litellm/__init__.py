"""Interlock behind the real LiteLLM proxy: ``make litellm``."""
