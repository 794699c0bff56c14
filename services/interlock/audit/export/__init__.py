"""Events in the formats that leave the service: protobuf messages, NDJSON and OCSF.

Imported by every room above it and the command line. It imports no other room.
"""
