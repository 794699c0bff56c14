"""The bindings of an answer's sentence compared with those of its sources (SPEC-005 §5.3)."""

from __future__ import annotations

from dataclasses import replace

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import NEGATION_FLIP, Misbinding
from interlock.dpe.comparison.bindings.frames import PredicateFrame
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.bindings.polarity import reversed_predicate, turned_setting
from interlock.dpe.comparison.bindings.roles import moved
from interlock.dpe.comparison.bindings.scopes import raised, unbounded
from interlock.dpe.comparison.bindings.turned import tells_the_other_case, turned_word
from interlock.dpe.comparison.pairings.certainty import overstated
from interlock.dpe.comparison.pairings.contrasted import contrasted
from interlock.dpe.comparison.pairings.crossed import crossed_actors
from interlock.dpe.comparison.pairings.denial import denied
from interlock.dpe.comparison.pairings.exchanged import exchanged
from interlock.dpe.comparison.pairings.grouped import grouped
from interlock.dpe.comparison.pairings.included import included, without_told_exceptions
from interlock.dpe.comparison.pairings.lifted import lifted
from interlock.dpe.comparison.pairings.needed import turned_need
from interlock.dpe.comparison.pairings.normed import turned_norm
from interlock.dpe.comparison.pairings.parallel import crossed_values
from interlock.dpe.comparison.pairings.partners import partnered
from interlock.dpe.comparison.pairings.ranked import ranked
from interlock.dpe.comparison.pairings.realised import realised
from interlock.dpe.comparison.pairings.reordered import reordered
from interlock.dpe.comparison.pairings.traded import traded
from interlock.dpe.comparison.replaced.bounded import bounded
from interlock.dpe.comparison.replaced.counted import counted
from interlock.dpe.comparison.replaced.excluded import excluded
from interlock.dpe.comparison.replaced.outdone import outdone
from interlock.dpe.comparison.replaced.placed import placed
from interlock.dpe.comparison.replaced.portioned import portioned
from interlock.dpe.comparison.replaced.rated import rated
from interlock.dpe.comparison.replaced.recaused import recaused, without_told_causes
from interlock.dpe.comparison.replaced.spoken import spoken
from interlock.dpe.comparison.replaced.voiced_by import voiced_by
from interlock.dpe.comparison.ways.directed import directed
from interlock.dpe.comparison.ways.passed import passed
from interlock.dpe.comparison.ways.thresholds import tells_the_other_side, turned_threshold
from interlock.dpe.comparison.widened.both import one_for_both
from interlock.dpe.comparison.widened.exchanged_exception import exchanged_exception
from interlock.dpe.comparison.widened.extended import extended
from interlock.dpe.comparison.widened.narrowed import narrowed
from interlock.dpe.comparison.widened.others import of_others_too
from interlock.dpe.comparison.widened.refused import refused
from interlock.dpe.comparison.widened.waived import waived
from interlock.dpe.comparison.worded.alone import one_or_both
from interlock.dpe.comparison.worded.opposed import opposed
from interlock.dpe.comparison.worded.routes import turned_route
from interlock.dpe.comparison.worded.shifted import shifted
from interlock.dpe.comparison.worded.spared import bound_though_spared
from interlock.dpe.comparison.worded.stood import stood
from interlock.dpe.comparison.worded.transferred import transferred

_RULES = (
    contrasted,
    transferred,
    crossed_actors,
    crossed_values,
    traded,
    reordered,
    recaused,
    denied,
    turned_norm,
    turned_need,
    overstated,
    grouped,
    included,
    ranked,
    realised,
    placed,
    counted,
    excluded,
    turned_route,
    shifted,
    stood,
    one_or_both,
    bound_though_spared,
    rated,
    bounded,
    spoken,
    voiced_by,
    portioned,
    outdone,
    opposed,
    directed,
    passed,
    turned_threshold,
    extended,
    refused,
    waived,
    of_others_too,
    narrowed,
    one_for_both,
    exchanged_exception,
)
"""What looks at a whole sentence, in order: the first that finds something is told, since one fault shows in many ways."""


def compare(claimed: ReadSentence, evidence: Evidence, mentioned: frozenset[str]) -> list[Misbinding]:
    """Return what one sentence binds otherwise than the sources. *mentioned* are the content words of its answer."""
    found = [
        replace(finding, about=frame.words)
        for frame in claimed.frames
        for finding in (_of_frame(frame, evidence),)
        if finding is not None
    ]
    found = without_told_causes(without_told_exceptions(found, claimed), claimed, evidence)
    if not found and (swap := exchanged(claimed, evidence)) is not None:
        found.append(replace(swap, about=claimed.content))
    if not found and (other := partnered(claimed, evidence) or turned_word(claimed, evidence)) is not None:
        found.extend(without_told_causes([_within(other, claimed)], claimed, evidence))
    for rule in _RULES:
        if not found and (pair := rule(claimed, evidence)) is not None:
            found.append(_within(pair, claimed))
    limit = unbounded(claimed, evidence, mentioned) or (None if found else lifted(claimed, evidence))
    limits = [replace(limit, about=claimed.content)] if limit is not None else []
    found = [f for f in found if f.type != NEGATION_FLIP or not _is_of_the_other_case(claimed, f, evidence)]
    return without_told_exceptions([*found, *limits], claimed)


def _is_of_the_other_case(claimed: ReadSentence, found: Misbinding, evidence: Evidence) -> bool:
    return tells_the_other_case(claimed, found.evidence, evidence) or tells_the_other_side(claimed.text, found.evidence)


def _within(found: Misbinding, claimed: ReadSentence) -> Misbinding:
    """Return a finding with the words of its sentence, where the rule does not say which clause it is about."""
    return found if found.about else replace(found, about=claimed.content)


def _of_frame(frame: PredicateFrame, evidence: Evidence) -> Misbinding | None:
    turned = reversed_predicate(frame, evidence) or turned_setting(frame, evidence)
    return turned or moved(frame, evidence) or raised(frame, evidence)
