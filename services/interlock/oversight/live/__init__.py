"""The live console: sessions, their trees and windows, callers and their budgets, to look at (OBS-5).

Whoever is signed in sees its figures, and content if the role allows; every look at a text is in the session's chain. It reads, but for
the stop buttons of an admin (``stopping``).
"""
