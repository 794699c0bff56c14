"""Places in places: whether a text says that one lies in the other, *Peru's port of Callao*, *Callao, Peru* (SPEC-005 §5.3)."""

_JOINTS = (", ", ", in ", " in ", ", the capital of ", ", a city in ", ", a town in ", ", a village in ")
_MOST_BETWEEN = 4
"""Words between a place and what is said to be its own: *Peru's busiest port city of Callao*."""
_ENDS = frozenset(",;:.")


def lies_in(text: str, one: str, other: str) -> bool:
    """Whether a text ties two names as a place and one in it, so that what happened in one of them may be told of the other."""
    low = text.lower().replace("’", "'")
    first, second = one.lower().removeprefix("the "), other.lower().removeprefix("the ")
    return any(
        _owns(low, whole, part) or any(f"{part}{joint}{whole}" in low for joint in _JOINTS)
        for whole, part in ((first, second), (second, first))
    )


def _owns(text: str, whole: str, part: str) -> bool:
    _, found, behind = text.partition(f"{whole}'s ")
    between = behind.partition(part)[0]
    return bool(found) and part in behind and len(between.split()) <= _MOST_BETWEEN and _ENDS.isdisjoint(between)
