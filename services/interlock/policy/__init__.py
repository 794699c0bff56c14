"""The policy service: resolves and decides policies, and keeps the files of agent types and reviewers.

No other service imports it; the rules themselves are in `domain.policy`.
"""
