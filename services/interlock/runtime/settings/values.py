"""Types of settings beyond the plain ones. Each type checks its values and has the text for an invalid one."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from interlock.domain.binding.rank import Rank
from interlock.domain.errors import Refused
from interlock.domain.merkle.log_name import name_problem
from interlock.domain.policy.remedies import RemedyKind
from interlock.domain.risk.regulatory import DOMAINS, canonical_domain
from interlock.runtime.egress.addresses import allowed_origins, check_url

_REDIS_SCHEMES = ("redis://", "rediss://", "unix://", "sentinel://", "sentinels://", "memory://")


def _matching(pattern: str, requirement: str) -> AfterValidator:
    """Return the validator of texts that match *pattern* as a whole."""
    compiled = re.compile(pattern)

    def checked(value: str) -> str:
        if not compiled.fullmatch(value):
            raise ValueError(requirement)
        return value

    return AfterValidator(checked)


def _starting_with(schemes: tuple[str, ...], requirement: str) -> AfterValidator:
    """Return the validator of URLs that are empty or start with one of *schemes*."""

    def checked(value: str) -> str:
        if value and not value.startswith(schemes):
            raise ValueError(requirement)
        return value

    return AfterValidator(checked)


def _registered_domain(value: str) -> str:
    canonical = canonical_domain(value)
    if canonical is None:
        raise ValueError(f"must be one of {', '.join(DOMAINS)}, or empty")
    return canonical


def _log_name(value: str) -> str:
    if problem := name_problem(value):
        raise ValueError(problem)
    return value


def _host_names(value: str) -> str:
    hosts = [host.strip() for host in value.split(",") if host.strip()]
    for host in hosts:
        try:
            check_url(f"https://{host}:443/", frozenset({(host.lower(), 443)}))
        except Refused:
            raise ValueError("must be host names separated by commas, such as reports.example.com") from None
    return ",".join(dict.fromkeys(host.lower() for host in hosts))


def _origins(value: str) -> str:
    try:
        allowed_origins(value)
    except Refused:
        raise ValueError("must be HOST:PORT entries separated by commas") from None
    return value


def _listing(item: str, requirement: str, *, among: Collection[str] = ()) -> AfterValidator:
    """Return the validator of lists, separated by commas, of what matches *item*; each once, and only *among* those given."""
    compiled = re.compile(item)

    def checked(value: str) -> str:
        found = list(dict.fromkeys(part.strip() for part in value.split(",") if part.strip()))
        if not all(compiled.fullmatch(part) and (not among or part in among) for part in found):
            raise ValueError(requirement)
        return ",".join(found)

    return AfterValidator(checked)


BINDINGS = tuple(rank.word for rank in Rank if rank is not Rank.TOKEN)

BindingRanks = Annotated[str, _listing(r"[a-z]+", "must be of " + ",".join(BINDINGS), among=BINDINGS)]
HeaderNames = Annotated[
    str,
    _listing(
        r"(?!crp[-_]|cookie$|authorization$)[a-z0-9-]{1,64}", "must be header names in lower case, such as x-session-id"
    ),
]
FieldPaths = Annotated[
    str,
    _listing(
        r"metadata\.[A-Za-z0-9_.-]{1,64}|user|safety_identifier|prompt_cache_key",
        "must be of metadata.NAME, user, safety_identifier, prompt_cache_key",
    ),
]

ParameterNames = Annotated[
    str, _listing(r"[A-Za-z_][A-Za-z0-9_]{0,63}", "must be names of parameters, such as top_k,chat_template_kwargs")
]

ScopeNames = Annotated[
    str, _listing(r"[!#-+\--\[\]-~]{1,64}", "must be names of scopes, such as openid,profile,email,groups")
]
SIGN_IN_WAYS = ("key", "link", "oidc")
SignInWays = Annotated[
    str, _listing(r"[a-z]+", "must be of " + ",".join(SIGN_IN_WAYS), among=SIGN_IN_WAYS), Field(min_length=1)
]


def _remedies(value: object) -> str:
    """Return the remedies in one order; a YAML list is read as well."""
    listed = value.split(",") if isinstance(value, str) else value
    names = [str(name).strip() for name in listed] if isinstance(listed, list) else []
    if not isinstance(listed, list) or set(filter(None, names)) - set(RemedyKind):
        raise ValueError(f"must be a list of {', '.join(RemedyKind)}, or empty")
    return ",".join(kind for kind in RemedyKind if kind in names)


Port = Annotated[int, Field(ge=0, le=65535)]
Seconds = Annotated[float, Field(gt=0, le=3600)]
HttpUrl = Annotated[str, _matching(r"(?:https?://[^\s/]+\S*)?", "must be a URL that starts with http:// or https://")]
HttpsUrl = Annotated[str, _matching(r"https://[^\s/]+\S*", "must be a URL that starts with https://")]
Namespaces = Annotated[
    str, _listing(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?", "must be names of namespaces, separated by commas")
]
ServiceAddress = Annotated[str, _matching(r"(?:unix:\S+|\S+:\d{1,5})?", "must be HOST:PORT or unix:/PATH")]
TritonAddress = Annotated[
    str,
    _matching(
        r"(?:(?:grpcs://)?[^\s/:]+:\d{1,5}|(?:grpcs://)?\[[0-9a-fA-F:]+\]:\d{1,5})?",
        "must be HOST:PORT or grpcs://HOST:PORT",
    ),
]
RedisUrl = Annotated[
    str, _starting_with(_REDIS_SCHEMES, "must start with redis://, rediss://, unix://, sentinel:// or memory://")
]
AuditUrl = Annotated[
    str,
    _starting_with(("sqlite:///", "postgresql://", "postgres://"), "must start with sqlite:/// or postgresql://"),
]
Region = Annotated[str, _matching(r"(?:[A-Z]{2})?", "must be two capital letters, such as EU, or empty")]
AiDomain = Annotated[str, AfterValidator(_registered_domain)]
LogName = Annotated[str, AfterValidator(_log_name)]
HostNames = Annotated[str, AfterValidator(_host_names)]
Origins = Annotated[str, AfterValidator(_origins)]
Remedies = Annotated[str, BeforeValidator(_remedies)]


def without_password(url: str) -> str:
    """Return *url* with its user information and password parameters masked, for people and logs."""
    shown = re.sub(r"(?<=://)[^/@\s]*@", "***@", url)
    return re.sub(r"(?i)(?<=[?&])((?:ssl)?password)=[^&\s]*", r"\1=***", shown)
