"""Ways: which way something went, on which side of a figure a rule holds, and which of two gives to the other."""
