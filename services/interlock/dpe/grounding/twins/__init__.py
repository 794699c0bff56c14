"""Claims weighed against their twins: the same words with one of them exchanged."""
