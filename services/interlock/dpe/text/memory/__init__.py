"""What was read out of texts, remembered for a while."""
