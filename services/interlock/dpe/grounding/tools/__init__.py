"""Tool calls of an answer: claims about what was asked for, judged against the words and sources that show it (ATT-5)."""
