"""What a sentence pairs with what, compared without the same predicate on both sides: parallel parts, order, certainty, denial."""
