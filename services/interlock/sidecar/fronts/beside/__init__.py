"""gRPC services that the sidecar serves beside its own: kernels, and decisions, which it passes on."""
