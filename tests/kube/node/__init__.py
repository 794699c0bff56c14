"""A stand-in for a node: scheduler, kubelet and service proxy, as far as the chart's pods need them. Ours, and for tests alone."""
