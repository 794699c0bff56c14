"""Certificates: mutual TLS between the processes of a mesh, and TLS of the fronts, both followed while they change.

`runtime.rpc`, `runtime.http`, services and commands may import it.
"""
