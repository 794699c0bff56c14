"""The query of a page: what it names, each once, and nothing else."""

from __future__ import annotations

from starlette.requests import Request

from interlock.domain.errors import invalid

LONGEST = 128


def query_of(request: Request, *names: str, longest: int = LONGEST) -> dict[str, str]:
    """Return what the query names. Refused with UNKNOWN_PARAMETER."""
    given = request.query_params.multi_items()
    found = dict(given)
    if len(found) < len(given) or found.keys() - set(names) or any(len(value) > longest for value in found.values()):
        raise invalid("UNKNOWN_PARAMETER", f"the query holds {', '.join(names)}, each once", param="query")
    return found
