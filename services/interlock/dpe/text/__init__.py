"""Text as a judge has to read it: disguises undone, layout removed, sentences, words and names found.

Every room that reads text imports it; it imports only `request.py` and `document.py`.
"""
