"""In plain words, from the figures of the run: what the engine is bad at."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

Table = Mapping[str, Any]
POOR_AUROC = 0.65
FALSE_ALARM = 0.10
MISSED = 0.10


def _listed(found: list[str]) -> str:
    return ", ".join(found)


def sentences(result: Table) -> Iterator[str]:
    """Yield one sentence for each weakness that the figures show, worst kinds first."""
    if result["together"] and result["together"]["unfaithful_low"].value > MISSED:
        yield (
            f"**Most of all: an answer that is LOW is not proven.** Of the unfaithful answers of all sets together, "
            f"{result['together']['unfaithful_low'].value:.0%} are LOW."
        )
    yield from _answers(result["responses"])
    yield from _claims(result["pairs"])
    yield from _types(result["distortions"], result["clean"])
    yield (
        "It judges an answer against the facts it is given. What is true and not among them counts as unsupported, and "
        "what is false among them counts as supported."
    )
    yield "It reads English. Other languages are judged by the same models, which were not trained on them."


def _answers(responses: Table) -> Iterator[str]:
    passed = [
        f"{t['title']} {t['unfaithful_low'].value:.0%}"
        for t in responses.values()
        if t["unfaithful_low"].value > MISSED
    ]
    if passed:
        yield f"**Unfaithful answers pass as LOW**: {_listed(passed)} of them."
    alarmed = [
        f"{t['title']} {1 - t['faithful_low'].value:.0%}"
        for t in responses.values()
        if 1 - t["faithful_low"].value > FALSE_ALARM
    ]
    if alarmed:
        yield f"**Faithful answers are called risky**: {_listed(alarmed)} of them are not LOW."
    coin = [
        f"{t['title']} {t['aurocs']['report'].value:.2f}"
        for t in responses.values()
        if t["aurocs"]["report"].low <= 0.5
    ]
    if coin:
        yield f"By answer it cannot be told from a coin (the interval of its AUROC holds 0.5) on {_listed(coin)}."
    yield from _beaten(responses, "aurocs", "report", "By answer")


def _claims(pairs: Table) -> Iterator[str]:
    poor = [
        f"{t['title']} {t['auroc']['model'].value:.2f}"
        for t in pairs.values()
        if t["auroc"]["model"].value < POOR_AUROC
    ]
    if poor:
        yield f"By claim its model is poor (AUROC below {POOR_AUROC}) on {_listed(poor)}."
    weak = [
        f"{t['title']} {t['accuracy']['model'].value:.0%} (commonest label {t['commonest']:.0%})"
        for t in pairs.values()
        if t["accuracy"] and t["accuracy"]["model"].low <= t["commonest"]
    ]
    if weak:
        yield f"Over three classes it is not surely better than always saying the commonest label on {_listed(weak)}."
    yield from _beaten(pairs, "auroc", "model", "By claim")


def _beaten(tables: Table, key: str, ours: str, by: str) -> Iterator[str]:
    names = {"lexical": "counting shared words", "cosine": "the cosine of embeddings", "previous": "the previous model"}
    for way, name in names.items():
        found = [
            t["title"]
            for t in tables.values()
            if way in t[key] and not math.isnan(t[key][way].value) and t[key][way].value > t[key][ours].value
        ]
        if found:
            yield f"{by}, {name} beats it on {_listed(found)}."


def _types(bent: Table, clean: Table) -> Iterator[str]:
    missed = [f"{kind} {1 - t['noticed'].value:.0%}" for kind, t in bent.items() if t["noticed"].value < 0.97]
    if missed:
        yield f"Of generated distortions it misses {_listed(missed)}."
    unnamed = [f"{kind} {t['type_named'].value:.0%}" for kind, t in bent.items() if t["type_named"].value < 0.8]
    if unnamed:
        yield f"What it finds it does not always call by its right name: {_listed(unnamed)} are named as what they are."
    accused = [f"{t['accused'].value:.0%} ({kind})" for kind, t in clean.items() if t["accused"].value > 0.02]
    if accused:
        yield f"It accuses texts that say the same of something they did not do: {_listed(accused)}."
    risky = [f"{t['not_low'].value:.0%} ({kind})" for kind, t in clean.items() if t["not_low"].value > FALSE_ALARM]
    if risky:
        yield f"It calls texts that say the same risky: {_listed(risky)}."
