"""Canonical JSON: the one text of a value that hashes and HMACs cover."""

from __future__ import annotations

import json
from json.encoder import c_make_encoder, encode_basestring  # type: ignore[attr-defined]  # the stubs know the class alone

# Made once: ``JSONEncoder.encode`` makes one for each value, and a governed call has a dozen.
_SORTED, _SKIPPED, _NAN = True, False, False
_parts = c_make_encoder(None, json.JSONEncoder().default, encode_basestring, None, ":", ",", _SORTED, _SKIPPED, _NAN)


def canonical_json(value: object) -> str:
    """Return the canonical text of a JSON value: sorted keys, no spaces, UTF-8 kept, no NaN.

    Raises ``ValueError`` for a number that is not finite, ``TypeError`` for what is no JSON value.
    """
    return "".join(_parts(value, 0))
