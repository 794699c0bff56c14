"""What a call says about its session, read once; and by what its session is to be found again (requirements.md, ATT-1)."""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from interlock.api.session.v1 import session_pb2
from interlock.domain.binding import cookie, evidence, history
from interlock.domain.binding.digests import Digests
from interlock.domain.binding.evidence import EvidenceName, EvidenceSources, Names
from interlock.domain.binding.history import HistoryTurn
from interlock.domain.binding.rank import Rank
from interlock.domain.errors import Refused, unavailable
from interlock.runtime.clock import system_clock
from interlock.runtime.keys.derivation import BINDING, load_keyring
from interlock.runtime.keys.masters import decoded
from interlock.runtime.settings.model import Settings
from interlock.sidecar.openai import completion
from interlock.sidecar.openai.chat import Chat
from interlock.sidecar.openai.completion import Completion

ANSWER = "chatcmpl-"
"""Begins the id of an answer; what follows is its window's."""


@dataclass(frozen=True)
class CallBinding:
    """The evidence of one call. It holds digests, and no name or text of the caller but the question."""

    digests: Digests | None = None
    """``None`` for a call that nothing can bind: it starts a session or has a token."""
    said: Names = evidence.NOTHING
    turns: tuple[HistoryTurn, ...] = ()
    asked: str | None = None
    """What the answer will have answered; ``None``: no later call can carry this answer."""
    cookies: cookie.CookieTerms | None = None
    """How the answer can set a cookie; ``None``: it cannot."""

    @property
    def speaks(self) -> bool:
        """Whether anything in it may name a session that is there already."""
        return bool(self.said.names or self.turns)

    def evidence(self) -> session_pb2.BindingEvidence:
        """Return what the session service is asked with."""
        turns = [session_pb2.BoundTurn(digest=turn.digest, weak=turn.weak) for turn in self.turns]
        return session_pb2.BindingEvidence(names=self.names(), turns=turns)

    def names(self, *, without: Iterable[Rank] = ()) -> list[session_pb2.BoundName]:
        """Return the call's names, the strongest first, but those of the ranks *without*."""
        left_out = frozenset(without)
        return [_bound(name) for name in self.said.names if name.rank not in left_out]

    def learnt(self, session_id: str, answer: Completion | None, *, cookie_set: bool) -> list[session_pb2.BoundName]:
        """Return the names by which *session_id* is to be found from now on; *answer* is what was delivered, if it was.

        The call's own cookie and response id are names of what was before. A name that another session has stays with it: the
        index sees to that. *cookie_set*: whether the session's cookie goes out with the answer.
        """
        if self.digests is None:
            return []
        own = [EvidenceName(Rank.HINT, evidence.session_digest(self.digests, session_id), begins=False)]
        if self.cookies and cookie_set:
            value = cookie.value_of(self.digests, session_id)
            own.append(EvidenceName(Rank.COOKIE, cookie.digest_of(self.digests, value), begins=False))
        if answer is not None and answer.completion:
            digest = evidence.response_digest(self.digests, str(answer.completion["id"]))
            own.append(EvidenceName(Rank.RESPONSE, digest, begins=False))
        known = {name.digest for name in own}
        given = self.names(without={Rank.COOKIE, Rank.RESPONSE})
        if self.said.session_id and self.said.session_id != session_id:
            given = [name for name in given if name.rank != Rank.HINT.value or name.begins]
        return [*map(_bound, own), *(name for name in given if name.digest not in known)]

    def turn(self, answer: Completion) -> session_pb2.BoundTurn | None:
        """Return the turn by which a later call that carries *answer* is recognised; of several choices, the first one's.

        ``None`` where none can carry it.
        """
        if self.digests is None or self.asked is None or not answer.completion:
            return None
        made = history.turn(self.digests, self.asked, answer.choices[0]["message"])
        return session_pb2.BoundTurn(digest=made.digest, weak=made.weak)

    def cookie_for(self, session_id: str) -> str:
        """Return the Set-Cookie header for a session; empty where the caller has that cookie, or can be sent none."""
        if self.digests is None or self.cookies is None or not session_id:
            return ""
        value = cookie.value_of(self.digests, session_id)
        return "" if hmac.compare_digest(value, self.said.cookie or "") else cookie.set_cookie(value, self.cookies)

    def unasked(self) -> CallBinding:
        """Return the same for a window whose answer the caller does not receive: no later call can carry it."""
        return replace(self, asked=None)


UNBOUND = CallBinding()
"""The evidence of a call that gives none."""


@dataclass(frozen=True)
class BindingReader:
    """Reads the evidence of calls, as the settings say."""

    key: bytes
    sources: EvidenceSources
    cookies: cookie.CookieTerms | None
    """How cookies are set; ``None``: none is set or read."""

    def read(
        self, scope: str, lines: Sequence[tuple[str, str]], chat: Chat | None = None, *, cookies: bool = False
    ) -> CallBinding:
        """Return the evidence in the header *lines* and in the *chat* request of a caller."""
        digests, terms = Digests(self.key, scope), self.cookies if cookies else None
        body: Mapping[str, Any] = {} if chat is None else {**chat.body, **chat.continues}
        said = evidence.read(self.sources, digests, lines, body, cookies=terms is not None)
        read = CallBinding(digests, said, cookies=terms)
        if chat is None or Rank.CONVERSATION not in self.sources.ranks:
            return read
        turns, asked = history.turns(chat.messages, digests), history.pending(chat.messages)
        return replace(read, turns=turns, asked=asked)


def binding_reader(settings: Settings) -> BindingReader:
    """Return the reader of a deployment. Refused with BINDING_KEY_WEAK, or as ``load_keyring`` refuses a master key."""
    sources = _sources(settings)
    secure = settings.front_cert_file is not None or settings.public_base_url.startswith("https://")
    terms = cookie.CookieTerms(settings.binding_ttl_s, secure)
    return BindingReader(_key(settings), sources, terms if Rank.COOKIE in sources.ranks else None)


def answer_id(window_id: str) -> str:
    """Return the id of a window's answer. It is ours, and as hard to guess as the window's own."""
    return ANSWER + window_id.removeprefix("crp_win_")


def identified(answer: Completion, window_id: str) -> Completion:
    """Return an *answer* of a window under its id, made now."""
    return completion.identified(answer, answer_id(window_id), system_clock() // 1_000_000)


def _key(settings: Settings) -> bytes:
    if settings.binding_key is not None:
        try:
            return decoded(settings.binding_key.get_secret_value())
        except Refused as weak:
            message = weak.message.replace("the master key is", "binding_key is")
            raise unavailable("BINDING_KEY_WEAK", message, retry_after_ms=0) from None
    keyring = load_keyring(settings)
    # The version that changes least often: with another key, no conversation from before is recognised.
    key = keyring.derive(keyring.oldest, "", BINDING)
    assert key is not None
    return key


def _sources(settings: Settings) -> EvidenceSources:
    words = {rank.word: rank for rank in Rank}
    return EvidenceSources(
        ranks=frozenset(words[word] for word in _listed(settings.bindings)),
        headers=_listed(settings.binding_headers),
        fields=_listed(settings.binding_fields),
    )


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part for part in text.split(",") if part)


def _bound(name: EvidenceName) -> session_pb2.BoundName:
    rank = session_pb2.BindingRank.ValueType(name.rank.value)
    return session_pb2.BoundName(rank=rank, digest=name.digest, begins=name.begins)
