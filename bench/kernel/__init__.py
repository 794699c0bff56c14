"""What decisions of a kernel cost, beside a peer, a limiter on the same store, an echo and the path's floor."""
