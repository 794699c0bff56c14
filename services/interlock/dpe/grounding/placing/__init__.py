"""Whether the values of a claim stand where its sources have them: read from their records, calculated, or in the wrong place."""
