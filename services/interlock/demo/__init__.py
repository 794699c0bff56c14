"""The demonstration: a bundled provider that replays recorded answers, a governed conversation, and its display."""
