"""The sidecar: the fronts that agents reach, and the one path of a governed call through the four services.

No service imports it. `guard.py` has the steps in order; docs/architecture.md draws the rooms.
"""
