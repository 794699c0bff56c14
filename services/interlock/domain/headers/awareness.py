"""Who knows of this protocol, by what a request says: such a caller gets what it asks for in every profile."""

from __future__ import annotations

from dataclasses import fields

from interlock.domain.headers.headers import RequestHeaders

PREFERENCES = frozenset(
    {"report_only", "no_store", "no_cache", "seed", "preferred", "if_match", "max_age_s", "stream_final"}
)
"""Values that ask for no protection and name no session: with these alone a caller is not aware. Every other one counts, one
that is added later too, so that what is asked for cannot be overlooked."""


def aware(asked: RequestHeaders) -> bool:
    """Tell whether a request asks for protection, or names a session or a delegation (SPEC-006, SPEC-012).

    A strategy counts where it is demanded, not where it is the first of those preferred.
    """
    ignored = PREFERENCES | ({"strategy"} if asked.preferred else frozenset())
    values = (getattr(asked, field.name) for field in fields(asked) if field.name not in ignored)
    return any(value is not None and value is not False and value != () for value in values)
