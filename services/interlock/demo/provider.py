"""The bundled provider: an OpenAI-compatible server that replays recorded answers.

It answers the last user message of a request if that was recorded, and 404 otherwise. It never makes up an answer.
Two things are not recorded. A request to review an answer gets the reply that there is no issue, as models often say about
their own answers. One question has a second answer, for a request that forbids repetition.
``python -m interlock.demo.provider --port 8089`` runs it alone.
"""

from __future__ import annotations

import argparse
import hmac
import json
import socket
import threading
import time
from types import TracebackType
from typing import Any, Self

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from interlock.demo.recording import Recording, load

MODEL = "recorded"
REVIEW = "Review the following response for accuracy against the provided context."
NO_REPEAT = "DO NOT repeat this content."
NO_ISSUES = '{"issues": []}'
STARTUP_S = 10.0


class Replay:
    """Answers chat requests from a recording and counts the requests."""

    def __init__(self, recording: Recording, *, api_key: str = "") -> None:
        self._recording, self.api_key = recording, api_key
        self.calls = 0
        self.crp_headers: set[str] = set()
        """Names of the CRP headers that reached the provider. There must be none (HDR-5)."""

    def app(self) -> Starlette:
        """Return the ASGI application."""
        return Starlette(
            routes=[
                Route("/v1/chat/completions", self._chat, methods=["POST"]),
                Route("/v1/models", self._models, methods=["GET"]),
            ]
        )

    async def _chat(self, request: Request) -> Response:
        self.calls += 1
        self.crp_headers |= {name for name in request.headers if name.startswith("crp-")}
        if not self._accepts(request):
            return _error(401, "invalid_api_key", "the provider's own key is needed")
        try:
            body = await request.json()
            question = last_user_message(body)
        except (ValueError, KeyError, TypeError, AttributeError):
            return _error(400, "invalid_request", "messages with a user message are needed")
        if body.get("stream"):
            return _error(400, "stream_not_recorded", "answers were recorded whole; ask without stream")
        if question.startswith(REVIEW):
            return JSONResponse(completion("review", NO_ISSUES))
        turn = self._recording.answer_to(question)
        if turn is None:
            return _error(404, "not_recorded", "no answer was recorded for this question")
        return JSONResponse(completion(turn.item, turn.again if forbids_repetition(body) else turn.answer))

    async def _models(self, request: Request) -> Response:
        if not self._accepts(request):
            return _error(401, "invalid_api_key", "the provider's own key is needed")
        model = {"id": MODEL, "object": "model", "created": 0, "owned_by": "interlock-demo"}
        return JSONResponse({"object": "list", "data": [model]})

    def _accepts(self, request: Request) -> bool:
        presented = request.headers.get("authorization", "").encode()
        return not self.api_key or hmac.compare_digest(presented, f"Bearer {self.api_key}".encode())


def last_user_message(body: dict[str, Any]) -> str:
    """Return the text of the last user message; ValueError when there is none."""
    for message in reversed(body["messages"]):
        if message["role"] == "user":
            content = message["content"]
            return content if isinstance(content, str) else "".join(part["text"] for part in content)
    raise ValueError("no user message")


def forbids_repetition(body: dict[str, Any]) -> bool:
    """Return whether a system message forbids the repetition of earlier answers."""
    return any(message["role"] == "system" and NO_REPEAT in message["content"] for message in body["messages"])


def completion(name: str, answer: str) -> dict[str, Any]:
    """Return a chat completion. It has no usage, because token counts were not recorded."""
    message = {"role": "assistant", "content": answer}
    return {
        "id": f"chatcmpl-{name}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": MODEL,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
    }


def _error(status: int, code: str, message: str) -> JSONResponse:
    kind = "invalid_request_error"
    return JSONResponse({"error": {"message": message, "type": kind, "param": None, "code": code}}, status)


class RunningProvider:
    """The provider on a free port of this machine, in a thread, while the ``with`` block runs."""

    def __init__(self, replay: Replay) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        # No log configuration: the process has its own.
        config = uvicorn.Config(replay.app(), log_config=None, access_log=False, lifespan="off")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True)

    @property
    def base_url(self) -> str:
        """Base URL for an OpenAI client."""
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1"

    def __enter__(self) -> Self:
        """Start. The port is already bound, so an early call waits instead of failing."""
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """Stop."""
        self._server.should_exit = True
        self._thread.join(STARTUP_S)
        self._socket.close()


def main() -> None:
    """Run the provider alone, and print the questions that it can answer."""
    parser = argparse.ArgumentParser(prog="python -m interlock.demo.provider", description=__doc__)
    parser.add_argument("--port", type=int, default=8089, help="port on 127.0.0.1 (default: %(default)s)")
    parser.add_argument("--questions", action="store_true", help="print the recorded questions as JSON lines and exit")
    options = parser.parse_args()
    recording = load()
    if options.questions:
        for turn in recording.turns:
            print(json.dumps({"item": turn.item, "question": turn.question}))  # noqa: T201 - the command's output
        return
    uvicorn.run(Replay(recording).app(), host="127.0.0.1", port=options.port, lifespan="off")


if __name__ == "__main__":
    main()
