"""What a call leaves behind: audit events and response headers, made of ids, numbers and fixed words.

Every room but `openai` may import it.
"""
