"""A session and its first window begin in one call to the session service: a fresh token is not presented to its minter."""

from __future__ import annotations

from interlock.api.common.v1 import common_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.errors import Kind
from tests.support.sidecar.sidecar import Hooked, reason_of, running_sidecar, token_of

pytest_plugins = ("tests.support.sidecar.fronts",)


class Changed:
    """A session service that opens no first window where *change* is given, which then changes the answer."""

    def __init__(self, service, change) -> None:
        self._inner, self._change = Hooked(service), change

    @property
    def calls(self) -> list[str]:
        return self._inner.calls

    def __getattr__(self, name):
        method = getattr(self._inner, name)
        if name != "StartSession":
            return method

        async def changed(request, context):
            if self._change is None:
                return await method(request, context)
            request.ClearField("first_window")
            answer = await method(request, context)
            self._change(answer)
            return answer

        return changed


def of_an_older_service(answer) -> None:
    assert not answer.HasField("first_window")


def refused(reason: str, kind: Kind):
    def change(answer) -> None:
        refusal = common_pb2.Refusal(kind=int(kind), reason=reason, message="no")
        answer.first_window.CopyFrom(session_pb2.OpenWindowResponse(refusal=refusal))

    return change


def sidecar_with(tmp_path, upstream, change):
    seen = []

    def wrap(services):
        seen.append(Changed(services["session"], change))
        return {**services, "session": seen[0]}

    return seen, running_sidecar(tmp_path, upstream=upstream, wrap=wrap)


async def test_the_first_window_comes_with_its_session(tmp_path, upstream):
    """Only the second call presents a token."""
    seen, running = sidecar_with(tmp_path, upstream, None)
    async with running as sidecar:
        first = await sidecar.chat()
        before = list(seen[0].calls)
        second = await sidecar.chat(token=token_of(first))

    assert (first.status_code, second.status_code) == (200, 200)
    assert before.count("StartSession") == 1
    assert "OpenWindow" not in before
    assert seen[0].calls.count("OpenWindow") == 1
    assert second.headers["crp-context-window"].startswith("2/")


async def test_an_older_session_service_is_presented_the_token(tmp_path, upstream):
    """It knows nothing of first_window; the call is governed all the same."""
    seen, running = sidecar_with(tmp_path, upstream, of_an_older_service)
    async with running as sidecar:
        first = await sidecar.chat()

    assert first.status_code == 200
    assert seen[0].calls.count("OpenWindow") == 1


async def test_a_store_that_changed_in_between_is_asked_again(tmp_path, upstream):
    """A refusal that a rebuild can mend is not the end of the call."""
    seen, running = sidecar_with(tmp_path, upstream, refused("SESSION_STATE_UNVERIFIED", Kind.UNAVAILABLE))
    async with running as sidecar:
        first = await sidecar.chat()

    assert first.status_code == 200
    assert "OpenWindow" in seen[0].calls


async def test_a_refused_first_window_leaves_the_session(tmp_path, upstream, provider):
    """Nothing is dispatched, and the caller has the token with which to try again."""
    seen, running = sidecar_with(tmp_path, upstream, refused("SESSION_STORE_UNAVAILABLE", Kind.UNAVAILABLE))
    async with running as sidecar:
        answer = await sidecar.chat()
        asked = len(provider.received)
        again = await sidecar.chat(token=token_of(answer))

    assert (answer.status_code, reason_of(answer)) == (503, "SESSION_STORE_UNAVAILABLE")
    assert asked == 0
    assert again.status_code == 200
    assert "OpenWindow" in seen[0].calls
