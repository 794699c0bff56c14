"""The APIs that a provider may be asked by (``upstream_api``): a chat request becomes its request, its answer a completion (API-6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from interlock.sidecar.openai import completion
from interlock.sidecar.openai.completion import AnswerAsked, Completion
from interlock.sidecar.provider.streams import AnswerEvents


class ProviderApi(Protocol):
    """How a provider is asked."""

    path: str
    models: str
    """Path of its list of models."""
    embeddings: str | None
    """Path of its embeddings; ``None`` where it has none."""

    def headers(self, key: str | None) -> dict[str, str]:
        """Return the headers that carry *key*, and those that the API demands."""
        ...

    def check(self, body: Mapping[str, Any]) -> None:
        """Refuse a chat request that this API has no words for, before anything is begun. ``param`` names the place."""
        ...

    def request(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the request for a checked chat request."""
        ...

    def read(self, data: bytes, asked: AnswerAsked, *, max_depth: int) -> Completion:
        """Return the answer, by allow-list. Refused with UPSTREAM_INVALID_RESPONSE."""
        ...

    def streamed(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the request for a checked chat request whose answer is to be streamed."""
        ...

    def events(self, asked: AnswerAsked) -> AnswerEvents:
        """Return what puts the events of a streamed answer together."""
        ...


def bearer(key: str | None) -> dict[str, str]:
    """Return the header that carries *key* to a provider of OpenAI's APIs."""
    return {"authorization": f"Bearer {key}"} if key else {}


class ChatApi:
    """Chat completions: what is governed is what is asked."""

    path = "/chat/completions"
    models = "/models"
    embeddings: str | None = "/embeddings"

    def headers(self, key: str | None) -> dict[str, str]:
        """Return the bearer token."""
        return bearer(key)

    def check(self, _body: Mapping[str, Any]) -> None:
        """Refuse nothing."""

    def request(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the request as it is."""
        return body

    def read(self, data: bytes, asked: AnswerAsked, *, max_depth: int) -> Completion:
        """Return the answer."""
        return completion.read(data, asked, max_depth=max_depth)

    def streamed(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the request, with the usage as its last chunk."""
        return {**body, "stream": True, "stream_options": {"include_usage": True}}

    def events(self, asked: AnswerAsked) -> AnswerEvents:
        """Return what puts the chunks together."""
        from interlock.sidecar.provider.chat_stream import ChatStream

        return ChatStream(asked.choices)


class ResponsesApi:
    """OpenAI's Responses API. The provider is told to keep nothing."""

    path = "/responses"
    models = "/models"
    embeddings: str | None = "/embeddings"

    def headers(self, key: str | None) -> dict[str, str]:
        """Return the bearer token."""
        return bearer(key)

    def check(self, body: Mapping[str, Any]) -> None:
        """Refuse what this API has no words for."""
        from interlock.sidecar.provider import responses_request

        responses_request.check(body)

    def request(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the request."""
        from interlock.sidecar.provider import responses_request

        return responses_request.made(body)

    def read(self, data: bytes, asked: AnswerAsked, *, max_depth: int) -> Completion:
        """Return the answer."""
        from interlock.sidecar.provider import responses_answer

        return responses_answer.read(data, asked, max_depth=max_depth)

    def streamed(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the request."""
        return {**self.request(body), "stream": True}

    def events(self, _asked: AnswerAsked) -> AnswerEvents:
        """Return what puts the events together."""
        from interlock.sidecar.provider.responses_stream import ResponseStream

        return ResponseStream()


class MessagesApi:
    """Anthropic's Messages."""

    path = "/messages"
    models = "/models?limit=1000"
    embeddings: str | None = None

    def headers(self, key: str | None) -> dict[str, str]:
        """Return the key and the version of the API."""
        return {"anthropic-version": "2023-06-01", **({"x-api-key": key} if key else {})}

    def check(self, body: Mapping[str, Any]) -> None:
        """Refuse what this API has no words for."""
        from interlock.sidecar.provider import messages_request

        messages_request.check(body)

    def request(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the request."""
        from interlock.sidecar.provider import messages_request

        return messages_request.made(body)

    def read(self, data: bytes, asked: AnswerAsked, *, max_depth: int) -> Completion:
        """Return the answer."""
        from interlock.sidecar.provider import messages_answer

        return messages_answer.read(data, asked, max_depth=max_depth)

    def streamed(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the request."""
        return {**self.request(body), "stream": True}

    def events(self, _asked: AnswerAsked) -> AnswerEvents:
        """Return what puts the events together."""
        from interlock.sidecar.provider.messages_stream import MessageStream

        return MessageStream()


APIS: Mapping[str, type[ChatApi | MessagesApi | ResponsesApi]] = {
    "chat": ChatApi,
    "messages": MessagesApi,
    "responses": ResponsesApi,
}
"""By the words of ``upstream_api``."""
