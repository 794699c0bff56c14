"""What an answer makes because it was asked to, rather than reports (ATT-5, ATT-8).

*Fix this: it gives up too early* is answered with values and names that the program does not have: they are made, as they should be.
*Explain this code* asks what it says. Only the first kind of answer is free to bring what no source states; what it says wrongly of
the program is found either way. The times of an agenda that was asked for are made too, as is the time of a call that is proposed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from interlock.dpe.document import Claim, Fact
from interlock.dpe.text.patterns import pattern, spaced
from interlock.dpe.text.program import LineKind, ProgramReader
from interlock.dpe.text.text import Text
from interlock.dpe.values.extraction import read
from interlock.dpe.values.units import TIME

_ORDER = spaced(
    r"""
    (?:\A|[.!?:;,\n]\s*|\b(?:please|can\syou|could\syou|would\syou|will\syou|help\sme(?:\sto)?|need\s(?:you\s)?to|want\s(?:you\s)?to
      |like\s(?:you\s)?to|should\s(?:i|we|you)|let's|let\sus|and|then|now|just|must)\s+)
    (?:please\s+|now\s+|also\s+|just\s+|then\s+)*
    (?:fix|debug|refactor|rewrite|improve|optimi[sz]e|speed\sup|simplify|clean\sup|change|modify|update|upgrade|adapt|add|remove|delete|drop
      |replace|rename|extend|convert|port|translate|migrate|implement|complete|finish|make|turn|support|handle|harden|secure|tune|adjust
      |increase|decrease|raise|lower|reduce|set|patch|correct|review|suggest|recommend|wrap|split|extract|move|write|vectori[sz]e
      |paralleli[sz]e|annotate|test|retry|use|let|scale|configure|enable|disable|bump|cache|log|sort|validate)\b
    """,
    ignore_case=True,
)
_TROUBLE = spaced(
    r"""
    \bwhy\s+(?:is|are|does|do|did|was|isn't|aren't|doesn't|don't|didn't|won't|can't)\b
    | \bwhat(?:'s|\s+is|\s+am\s+i)\s+(?:wrong|doing\s+wrong|missing|the\s+(?:bug|error|problem|issue|fix))\b
    | \b(?:doesn't|does\s+not|don't|do\s+not|isn't|is\s+not|not|won't|stopped)\s+work
    | \b(?:fails?|failed|failing|crash(?:es|ed|ing)?|broken|bugs?|errors?)\b
    | \bhow\s+(?:can|do|would|could|should|might|to)\b | \b(?:better|faster|cleaner|safer)\b
    """,
    ignore_case=True,
)
_SETTINGS = spaced(
    r"""
    \b(?:this|these|my|our|following)\s(?:[\w-]+\s){0,2}(?:config\w*|compose|ya?ml|toml|json|manifest|terraform|helm|chart|deployment|pipeline|workflow|settings|schema|env)\b
    """,
    ignore_case=True,
)
_SETTING = pattern(
    r"^\s*(?:- )?[\"']?[\w.-]+[\"']?\s*[:=](?:\s*\S+){0,4}\s*$|^\s*-\s+\S+\s*$|^\s*\[[\w.-]+\]\s*$|^\s*[\[\]{}]+,?\s*$"
)
"""A line of a file of settings. A record looks so as well, so that the order has to say that settings are worked on."""
_PLAN = spaced(
    r"""
    \b(?:draft|write|create|make|plan|propose|suggest|prepare|generate|design|outline|come\sup\swith|put\stogether)\b
    [^.?!\n]{0,60}\b(?:agenda|itinerary|schedule|timetable|plan|roadmap|workout|lesson|menu|programme|routine|day|trip|weekend)s?\b
    """,
    ignore_case=True,
)
_PROPOSED = spaced(
    r"""
    \b(?:could|would|can|shall|may|might)\s+(?:we|you|i)\b[^.!]*\? | \b(?:how|what)\sabout\b[^.!]*\? | \b(?:i|we)(?:'d|\swould|\swant\sto)?\s(?:like\sto\s)?(?:suggest|propose)\b
    | \blet\s(?:me|us)\sknow\s(?:if|whether)\b | \bwould\b[^.!]*\b(?:work|suit)\b[^.!]*\?
    """,
    ignore_case=True,
)
_RATES = pattern(
    r"\b(?:rate|rating|score|grade|rank|evaluate|assess|judge)\b[^.?!\n]{0,60}\b(?:from|of|between|scale|out)\b",
    ignore_case=True,
)
_RATED = pattern(
    r"\b(\d+(?:\.\d+)?)\s?(?:/|out of|of)\s?(?:5|10|20|100)\b|\b(?:rating|score|grade)\W{1,4}(?:is\s|of\s)?(\d+(?:\.\d+)?)",
    ignore_case=True,
)
_GIVEN = pattern(r"\b(?:this|these|it|its|my|here|above|below)\b", ignore_case=True)
"""Points at what was given: a question about a trouble with it is one for work on it."""
_MORE = spaced(
    r"""
    ^\s*(?:
      Traceback\s\(most\srecent\scall\slast\) | File\s".+",\sline\s\d+ | at\s[\w.$<>]+\(.*\)$ | [\w.]*(?:Error|Exception):\s
    | (?:FROM|RUN|CMD|COPY|WORKDIR|ENV|EXPOSE|ENTRYPOINT|ARG)\s+\S | (?:done|fi|esac)\b | (?:for|while|if|elif)\b.*;?\s*(?:do|then)\s*$
    )
    """,
)
"""Program text that ``program`` leaves to its reader: traces, image files, shell."""
_FOLLOWS = pattern(
    r"^\s*(?:[\"'\[{(@*&|].*[,;\\|]|[+-].*|[\w.\"']+\s*[:=]\s*\S+,?|[\w.]+\([^()]*|\w+ [\"'$-].*|.*\\|[)\]}]+.*)\s*$"
)
"""What may stand between lines of a program, and proves none by itself."""
_MOST_LINES, _FEWEST_SETTINGS = 400, 3
_SHARE_SURE, _SHARE = 1 / 3, 0.6


def asks_for_work(query: str, facts: Sequence[Fact]) -> bool:
    """Tell whether a query orders work on programs that are most of what was given."""
    troubled = _TROUBLE.search(query) is not None and _GIVEN.search(query) is not None
    if not troubled and _ORDER.search(query) is None:
        return False
    settings = _SETTINGS.search(query) is not None
    worked_on = (fact for fact in facts if is_program(fact.content) or (settings and is_settings(fact.content)))
    return 2 * sum(len(fact.content) for fact in worked_on) > sum(len(fact.content) for fact in facts)


def without_made(
    found: Mapping[str, tuple[str, ...]], claims: Sequence[Claim], query: str
) -> dict[str, tuple[str, ...]]:
    """Return fabrications without what the *query* asks to be made, the times of a plan or a rating, and without proposed times."""
    made = _Made(plans=_PLAN.search(query) is not None, rates=_RATES.search(query) is not None)
    texts = {claim.claim_id: claim.text for claim in claims}
    kept = {name: tuple(one for one in each if not made.has(one, texts[name])) for name, each in found.items()}
    return {name: each for name, each in kept.items() if each}


@dataclass(frozen=True)
class _Made:
    """What is asked to be made."""

    plans: bool
    rates: bool

    def has(self, text: str, claim: str) -> bool:
        """Tell whether a text of a claim is of that, or is a time that the claim proposes."""
        if self.rates and any(text in match.groups() for match in _RATED.finditer(claim)):
            return True
        return (self.plans and _is_time(text)) or (_PROPOSED.search(claim) is not None and _is_time(text, dated=True))


def _is_time(text: str, *, dated: bool = False) -> bool:
    """Tell whether a text is a time of day or a length of time; *dated*: or a day."""
    values = read(text).values
    return bool(values) and all(
        one.unit == TIME if one.moment is None else (dated or one.moment.minute is not None) for one in values
    )


def is_program(text: str) -> bool:
    """Tell whether a text is a program or a trace of one, by most of its lines."""
    lines = _lines(text)
    if not lines:
        return False
    reader, sure, likely = ProgramReader(), 0, 0
    for line in lines:
        kinds = {kind for kind, _ in reader.parts(_plain(line))}
        is_sure = LineKind.PROGRAM in kinds or _MORE.search(line) is not None
        sure += is_sure
        likely += is_sure or LineKind.COMMENT in kinds or _FOLLOWS.search(line) is not None
    return sure >= _SHARE_SURE * len(lines) and likely >= _SHARE * len(lines)


def is_settings(text: str) -> bool:
    """Tell whether a text may be a file of settings, by most of its lines."""
    lines = _lines(text)
    return len(lines) >= _FEWEST_SETTINGS and sum(_SETTING.search(one) is not None for one in lines) >= _SHARE * len(
        lines
    )


def _lines(text: str) -> list[str]:
    return [line for line in text.split("\n", _MOST_LINES)[:_MOST_LINES] if any(map(str.isalnum, line))]


def _plain(line: str) -> Text:
    return Text(line, range(len(line)), range(1, len(line) + 1))
