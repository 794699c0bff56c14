"""Protobuf messages of the session service to domain values and back; a malformed request is refused here by field.

`servicer.py` and `restoring.py` import it.
"""
