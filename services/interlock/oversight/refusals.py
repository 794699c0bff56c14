"""What the pages answer when they cannot do what was asked: in words with a way back to a person, as JSON to a program."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from interlock.domain.errors import Kind, Refused, not_found
from interlock.oversight import pages
from interlock.oversight.markup import render, said
from interlock.oversight.oidc.sign_in import own_path
from interlock.oversight.site import Site, html, sign_in_page, view_of
from interlock.oversight.views import View
from interlock.runtime.rpc.errors import HTTP_CODES

FROM_ELSEWHERE = frozenset({"HOST_NOT_ALLOWED", "ORIGIN_NOT_ALLOWED"})
"""Refusals of what may come from another site: its answer says nothing of who is signed in."""

IN_WORDS: Mapping[Kind, str] = {
    Kind.INVALID: "The address, or what was sent, is not one that this page understands. Nothing was changed.",
    Kind.FORBIDDEN: "This is not open to you. Nothing was changed.",
    Kind.NOT_FOUND: "There is nothing here: it never was, its name or id is another one, or it is kept no longer.",
    Kind.CONFLICT: "What was asked does not go together with how things stand now. Look at them again.",
    Kind.EXHAUSTED: "As much as is possible is under way already. Try again in a moment.",
    Kind.UNAVAILABLE: "A part of Interlock does not answer now. Nothing is lost: reload this page in a moment.",
    Kind.TIMEOUT: "A part of Interlock took too long to answer. Nothing is lost: reload this page in a moment.",
    Kind.INTERNAL: "This is a defect of Interlock. Its log has the details.",
}
_IN_OTHER_WORDS: Mapping[str, str] = {
    "ROLE_SEES_NO_CONTENT": "This page is not for your role: it shows what was asked and answered, which is for reviewers and admins.",
    "ROLE_NOT_ADMIN": "This is not for your role: it is for admins.",
    "SESSION_NOT_COVERED": "This is not for your role: it covers the sessions of other keys and agent types.",
    "OIDC_GROUP_NOT_MAPPED": "The provider knows you, and this console has no role for you. Who runs it can give one of your groups a role.",
    "OIDC_UNREACHABLE": "The OpenID provider does not answer, so nobody can be signed in by it now. Nothing was changed: sign in again in a moment.",
    "OIDC_ANSWER_INVALID": "The OpenID provider answers, and not as it should, so nobody can be signed in by it. Nothing was changed.",
    "OIDC_ISSUER_MISMATCH": "The OpenID provider is another one than this console was set up for, so nobody can be signed in by it.",
    "VIEW_READS_ONLY": "This is not for your sign-in: it may look, and decides nothing.",
}
_WAYS_BACK = (
    ("/held/", "/", "the queue of reviews"), ("/stuck", "/stuck", "the stuck compensations"),
    ("/kernels", "/kernels", "all kernels"), ("/health", "/health", "the health of every part"),
    ("/would", "/would", "what would have been done in the last day"),
    ("/decisions", "/decisions", "all experiments"), ("/figures", "/figures", "the last hour"),
    ("/policy", "/policy", "an empty policy"),
)  # fmt: skip
"""Beginning of a path → where its list is, and what it is called."""


async def refused_answer(site: Site, request: Request, refused: Refused) -> Response:
    """Answer a refusal."""
    status = HTTP_CODES[refused.kind]
    if not _is_for_a_person(request):
        return _json(status, refused)
    if refused.reason == "SIGN_IN_REQUIRED" and request.method == "GET":
        back = own_path(request.scope["path"])
        return RedirectResponse(f"/sign-in?to={back}" if site.console.oidc else "/sign-in", 303)
    if refused.kind is Kind.UNAUTHENTICATED:
        page = sign_in_page(site, _with_hint(refused))
    else:
        page = refused_page(await _known_view(site, request, refused), status, refused, request.scope["path"])
    answer = html(page)
    answer.status_code = status
    return answer


async def nowhere_answer(site: Site, request: Request, error: HTTPException) -> Response:
    """Answer what no route has: a path that is none, or a method that a path does not take."""
    reason = "METHOD_NOT_ALLOWED" if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED else "PATH_NOT_FOUND"
    refused = not_found(reason, "there is nothing of that kind here")
    asks_for_html = "text/html" in request.headers.get("accept", "")
    if not asks_for_html or not _is_for_a_person(request):
        return JSONResponse({"reason": refused.reason, "message": refused.message}, error.status_code)
    known = await _known_view(site, request, refused) if site.is_our_host(request) else None
    answer = html(refused_page(known, error.status_code, refused, request.scope["path"]))
    answer.status_code = error.status_code
    return answer


def refused_page(view: View | None, status: int, refused: Refused, path: str) -> str:
    """Return the page that tells in words what was refused; *view*: who is signed in, where that is known."""
    frame = {**pages.frame_of(view), "here": ""} if view else pages.STRANGER
    back = next(((to, name) for start, to, name in _WAYS_BACK if path.startswith(start)), ("/sessions", "the sessions"))
    return render(
        "refused.html", title=f"{status} {HTTPStatus(status).phrase}", **frame, reason=refused.reason,
        words=_IN_OTHER_WORDS.get(refused.reason) or IN_WORDS.get(refused.kind, ""), message=said(refused.message),
        hint=said(refused.metadata.get("hint", "")), back=back,
    )  # fmt: skip


def _with_hint(refused: Refused) -> str:
    hint = refused.metadata.get("hint", "")
    return f"{refused.reason}: {refused.message}" + (f" ({hint})" if hint else "")


def _json(status: int, refused: Refused) -> Response:
    return JSONResponse(
        {"reason": refused.reason, "message": refused.message, "metadata": refused.metadata}, status
    )  # fmt: skip


async def _known_view(site: Site, request: Request, refused: Refused) -> View | None:
    """Return who is signed in; ``None`` where that cannot be told, and for what may come from another site."""
    if refused.reason in FROM_ELSEWHERE:
        return None
    try:
        return await view_of(site, request)
    except Refused:
        return None


def _is_for_a_person(request: Request) -> bool:
    """Tell whether a page is wanted: not at the paths of programs, and not by what asks for JSON alone."""
    accepted = request.headers.get("accept", "")
    wants_json = "application/json" in accepted and "text/html" not in accepted
    return not wants_json and not request.scope["path"].startswith(("/api/", "/static/"))
