"""What the records of a source say of the sentences of an answer, without a model."""

from __future__ import annotations

import numpy as np

from interlock.dpe.document import Claim, Distortion, Fact
from interlock.dpe.grounding.envelope import Cut, Envelope, EvidenceUnit
from interlock.dpe.grounding.placing.records.answer import verdicts
from interlock.dpe.grounding.placing.records.told import RecordVerdict
from interlock.dpe.grounding.placing.scopes import scopes
from interlock.dpe.grounding.tables import records
from tests.support.dpe import claim

ROOMS = """| Room | Beds | Sea view | Balcony | Breakfast | Price per night | Status |
| --- | --- | --- | --- | --- | --- | --- |
| Gull | 2 | yes | yes | included | €140 | booked |
| Heron | 3 | no | yes | extra charge | €120 | free |
| Osprey | 1 | no | no | included | €85 | under repair |
| Tern | 2 | yes | no | none | €98 | booked |"""
CREW = (
    '{"vessel": "Skua", "crew": [{"name": "Tove Lind", "role": "engineer", "first_aid": true, "shift": "night", "cabin": null, '
    '"languages": ["Norwegian", "English"]}, {"name": "Jan Moe", "role": "cook", "first_aid": false, "shift": "day", "cabin": "C2", '
    '"languages": ["Norwegian", "German"]}, {"name": "Ola Rud", "role": "deckhand", "first_aid": true, "shift": "day", "cabin": "C4", '
    '"languages": ["Norwegian"]}], "checked": {"hull": true, "engine": true, "mast": false}, "next_inspection": null}'
)
PLANS = """| Feature | Starter | Team | Company |
| --- | --- | --- | --- |
| Seats | 1 | 10 | 50 |
| Guest access | no | yes | yes |
| Single sign-on | no | no | yes |
| Support | forum | e-mail | phone |
| Audit log | no | yes | yes |"""
BACKUP = (
    "backup:\n  enabled: true\n  targets: [laptop, phone, server]\n  encryption: false\n  interval_day_minutes: 15\n"
    "  interval_night_minutes: 60\n  public_link: false\nproxy: null\nfee_eur: 0\n"
)


def judged(
    source: str, *sentences: str, query: str = "", also: str = "", titles: tuple[int, ...] = ()
) -> dict[str, RecordVerdict]:
    """Return the verdict of each sentence, each one claim. *also* is another fact, *titles* are the numbers of headings."""
    facts = (Fact("f1", source, 0.5), *((Fact("f2", also, 0.5),) if also else ()))
    units = (EvidenceUnit(1, also, frozenset(), 1),) if also else ()
    cut = Cut(
        facts, tuple(fact.content for fact in facts), units, tuple((0, one) for one in records.read(source).records)
    )
    envelope = Envelope(cut, np.zeros((len(units), 1)), np.zeros((len(facts), 1)))
    claims: list[Claim] = [claim(text, number) for number, text in enumerate(sentences, 1)]
    texts = {each.claim_id: each.text for each in claims}
    return verdicts(claims, texts, envelope, scopes(envelope), query, titles={f"c{n}" for n in titles})


def found(
    source: str, *sentences: str, query: str = "", also: str = "", titles: tuple[int, ...] = ()
) -> list[Distortion]:
    """Return all findings in the sentences."""
    verdict = judged(source, *sentences, query=query, also=also, titles=titles)
    return [one for each in verdict.values() for one in each.moved]
