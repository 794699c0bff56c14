"""The messages of ``ext_proc``: pure, one function for each thing that Envoy is told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from interlock.api.envoy import ext_proc_pb2 as pb

GOVERNED = "x-interlock-governed"
"""Set on a request that Interlock sends on, and on no other: the route to the provider asks for it."""

Lines = list[tuple[bytes, bytes]]

CHUNK = 65_536
"""Bytes of a body that go to Envoy in one message."""

_ENVOYS = "x-envoy-"
_ROUTING = frozenset({"host", "x-forwarded-proto"})
"""Headers without which Envoy finds no route."""
_HOP = frozenset({"connection", "content-length", "transfer-encoding", "keep-alive", "upgrade"})
"""Headers of one connection: Envoy writes its own. HTTP/2 forbids some of them."""
_OVERWRITE = pb.HeaderValueOption.OVERWRITE_IF_EXISTS_OR_ADD


def lines_of(headers: pb.HeaderMap) -> Lines:
    """Return the headers as they came, names in lower case."""
    return [
        (one.key.lower().encode("latin-1", "replace"), one.raw_value or one.value.encode()) for one in headers.headers
    ]


def scope_of(lines: Lines) -> dict[str, object]:
    """Return the ASGI scope of a request with these headers: routed by its path as it came, never by its host."""
    pseudo = {name: value for name, value in lines if name.startswith(b":")}
    raw_path, _, query = pseudo.get(b":path", b"/").partition(b"?")
    host = [(b"host", pseudo[b":authority"])] if b":authority" in pseudo else []
    plain = [(name, value) for name, value in lines if not name.startswith((b":", _ENVOYS.encode()))]
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": pseudo.get(b":method", b"GET").decode("latin-1"),
        "scheme": pseudo.get(b":scheme", b"http").decode("latin-1"),
        "path": raw_path.decode("latin-1"),
        "raw_path": raw_path,
        "query_string": query,
        "root_path": "",
        "headers": [*host, *plain],
        "client": None,
        "server": None,
    }


def sent_on(came: Lines, path: str, headers: Mapping[str, str]) -> pb.ProcessingResponse:
    """Return the head of the request for the provider: *path*, *headers* and the mark, and nothing of what *came*."""
    wanted = {":path": path, **headers, GOVERNED: "1"}
    common = pb.CommonResponse(header_mutation=_mutation(wanted, came), clear_route_cache=True)
    return pb.ProcessingResponse(request_headers=pb.HeadersResponse(response=common))


def request_body(data: bytes, *, ends: bool) -> list[pb.ProcessingResponse]:
    """Return the body of the request for the provider."""
    return [pb.ProcessingResponse(request_body=one) for one in _chunks(data, ends=ends)]


def answered(came: Lines, status: int, headers: Mapping[str, str]) -> pb.ProcessingResponse:
    """Return the head of the response for the client: *status* and *headers*, and nothing of what *came*."""
    common = pb.CommonResponse(header_mutation=_mutation({":status": str(status), **headers}, came))
    return pb.ProcessingResponse(response_headers=pb.HeadersResponse(response=common))


def response_body(data: bytes, *, ends: bool) -> list[pb.ProcessingResponse]:
    """Return a piece of the body for the client."""
    return [pb.ProcessingResponse(response_body=one) for one in _chunks(data, ends=ends)]


def without_trailers(came: Lines, *, of_request: bool) -> pb.ProcessingResponse:
    """Return trailers of which nothing is left."""
    trailers = pb.TrailersResponse(header_mutation=_mutation({}, came))
    if of_request:
        return pb.ProcessingResponse(request_trailers=trailers)
    return pb.ProcessingResponse(response_trailers=trailers)


def immediate(status: int, headers: Mapping[str, str], body: bytes) -> pb.ProcessingResponse:
    """Return a response of our own: nothing goes on to the provider, and nothing of it to the client."""
    own = pb.ImmediateResponse(
        status=pb.HttpStatus(code=status), headers=_mutation(headers), body=body, details="interlock"
    )
    return pb.ProcessingResponse(immediate_response=own)


def _mutation(wanted: Mapping[str, str], came: Lines = []) -> pb.HeaderMutation:  # noqa: B006 - never changed
    kept = {name.lower() for name in wanted}
    names = {name.decode("latin-1") for name, _ in came}
    removed = [one for one in sorted(names - kept) if not one.startswith((":", _ENVOYS)) and one not in _ROUTING]
    values = ((name.lower(), value) for name, value in wanted.items() if name.lower() not in _HOP)
    return pb.HeaderMutation(
        set_headers=[
            pb.HeaderValueOption(
                header=pb.HeaderValue(key=name, raw_value=value.encode("latin-1")), append_action=_OVERWRITE
            )
            for name, value in values
        ],
        remove_headers=removed,
    )


def _chunks(data: bytes, *, ends: bool) -> Iterable[pb.BodyResponse]:
    pieces = [data[at : at + CHUNK] for at in range(0, len(data), CHUNK)] or [b""]
    for number, piece in enumerate(pieces, 1):
        streamed = pb.StreamedBodyResponse(body=piece, end_of_stream=ends and number == len(pieces))
        yield pb.BodyResponse(response=pb.CommonResponse(body_mutation=pb.BodyMutation(streamed_response=streamed)))
