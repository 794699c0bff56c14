"""The audit service: an append-only log of every session's windows and events, whose chains and Merkle tree can be verified.

``wiring`` opens the service from the settings, ``servicer`` has its RPCs, ``requests`` checks what may be appended. The rooms
are layered, each importing only those below it: wiring > servicer > erasure, holds, merkle, streams, tree > sealing >
requests > store, export. Processes, the command line and tests import ``interlock.audit``; no other service does.
"""
