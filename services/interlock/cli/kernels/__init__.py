"""What the command line does about kernels beside the calls to them: a trace decided again, and what was recorded on this machine."""
