"""What takes the place of something else in a claim: another count, another side of a thing, another member of a set."""
