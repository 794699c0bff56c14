"""Compensations of sagas that are stuck: reviewers read them and decide, and the decision is sealed in the kernel's chain (KRN-5).

``compensations`` beside this room has the use cases; ``pages`` and ``routes`` show them in a browser.
"""
