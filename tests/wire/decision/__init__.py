"""The decision service over real gRPC."""
