"""Figures that the rows of an answer and of the sources make: products of cells, totals of columns, conversions, end times."""
