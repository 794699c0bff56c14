"""The inbox of reviews: what is held, with whose it is, what was asked and how the answer begins.

``reader`` reads it, with a record of each look; ``pages`` has the data of its page.
"""
