"""What a person looks at as it happens: the active sessions in a terminal, one of them, and the link to the console."""
