"""What many governed calls need: measured per call with several processes, and a small model of it."""
