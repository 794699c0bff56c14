"""One module per target: ``TestOneInput(data)`` raises when something that must hold does not.

``seeds()`` gives the inputs to begin with, ``WORDS`` what a random change alone would hardly ever spell.
"""
