"""What requests of the pages carry, read strictly: forms, JSON, queries, and the token of a form of this page and sign-in."""

from __future__ import annotations

import hmac
from urllib.parse import parse_qs

from starlette.requests import Request

from interlock.domain.errors import forbidden, invalid
from interlock.domain.signed import MalformedError, parse_json
from interlock.oversight.site import Site, view_of
from interlock.oversight.views import View
from interlock.runtime.http.body import read_body

LONGEST_BODY = 16_384
BODY_TIMEOUT_S = 10.0
LONGEST_QUERY = 256


async def signed_view(site: Site, request: Request, csrf: str) -> View:
    """Return the view of the cookie if the request carries its CSRF token. Refused with CSRF_TOKEN_INVALID."""
    view = await view_of(site, request)
    if not hmac.compare_digest(view.csrf.encode(), csrf.encode("utf-8", "replace")):
        raise forbidden("CSRF_TOKEN_INVALID", "the form is not of this page and this sign-in")
    return view


async def form_of(request: Request) -> dict[str, str]:
    """Return the fields of a form, those that it has once."""
    data = await _body(request, "application/x-www-form-urlencoded")
    found = parse_qs(data.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=8)
    return {name: values[0] for name, values in found.items() if len(values) == 1}


async def json_of(request: Request, *names: str) -> dict[str, str]:
    """Return a JSON object of exactly these strings."""
    try:
        value = parse_json(await _body(request, "application/json"))
    except MalformedError:
        raise invalid("INVALID_JSON", "the body is a JSON object, each key once") from None
    if not isinstance(value, dict) or value.keys() != set(names) or not all(isinstance(v, str) for v in value.values()):
        raise invalid("INVALID_REQUEST", f"the body is an object of the strings {', '.join(names)}")
    return value


def query_of(request: Request, *names: str, longest: int = LONGEST_QUERY) -> dict[str, str]:
    """Return what the query names. Refused with UNKNOWN_PARAMETER."""
    given = request.query_params.multi_items()
    found = dict(given)
    if len(found) < len(given) or found.keys() - set(names) or any(len(value) > longest for value in found.values()):
        raise invalid("UNKNOWN_PARAMETER", f"the query holds {', '.join(names)}, each once", param="query")
    return found


async def _body(request: Request, media_type: str) -> bytes:
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != media_type:
        raise invalid("UNSUPPORTED_MEDIA_TYPE", f"the body must be {media_type}")
    too_large = invalid("REQUEST_TOO_LARGE", f"a body has at most {LONGEST_BODY} bytes")
    return await read_body(request, LONGEST_BODY, timeout_s=BODY_TIMEOUT_S, too_large=too_large)
