"""What is measured: each figure beside its floor or a peer, in one run."""
