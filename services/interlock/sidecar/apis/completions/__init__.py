"""Legacy completions (API-3): a prompt becomes the one message of a chat request, and the answer its text."""
