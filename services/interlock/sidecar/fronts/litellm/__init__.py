"""The guardrail that LiteLLM asks: its generic guardrail API over the same guard (docs/adr/0044).

LiteLLM carries the provider's call. It asks once about each request and once about each answer; what it asks is in ``contract``,
requests whose answers have not come yet are in ``waiting``, and ``guardrail`` answers.
"""
