"""gRPC as the mesh uses it: servers, channels within a process and across the network, refusals, health, callers.

Services and commands may import it; in the runtime, only `http` does.
"""
