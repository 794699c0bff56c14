"""The demonstration: a bundled provider that replays recorded answers, a governed conversation, and how it is shown."""
