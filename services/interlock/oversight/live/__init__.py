"""The live console: sessions, their trees and windows, callers and their budgets, to look at (OBS-5).

It reads; nothing here changes a session. Whoever is signed in sees it, and every look at a text is in the session's chain.
"""
