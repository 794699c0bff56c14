"""What a column or a list comes to: its total, its average, its extremes."""
