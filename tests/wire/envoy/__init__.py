"""The real Envoy in front of a provider and of a tool server, with what it asks the sidecar."""
