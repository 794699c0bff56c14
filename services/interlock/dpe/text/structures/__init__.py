"""Structures in an answer: objects of programs, lines of CSV, statements of SQL, settings, each read with the keys of its values."""
