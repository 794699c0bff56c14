"""docs/quality.md: the figures of a run as tables, and in plain words what the engine is bad at."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from bench.quality import rules, weak
from bench.quality.metrics import Figure
from bench.quality.targets import targets

Table = Mapping[str, Any]
NAMES = {"lexical": "words", "cosine": "cosine", "previous": "previous model", "model": "model", "report": "engine"}
OURS = frozenset({"model", "report"})


def cell(found: Figure | None, *, percent: bool = False) -> str:
    """Return a figure with its interval; a dash where there is none."""
    if found is None or math.isnan(found.value):
        return "–"
    if percent:
        return f"{found.value:.1%} ({found.low * 100:.0f}–{found.high * 100:.0f})"
    return f"{found.value:.3f} ({found.low:.2f}–{found.high:.2f})"


def against(row: Mapping[str, Figure], ours: str, way: str, *, percent: bool = False) -> str:
    """Return a baseline's cell, in bold when it beats us."""
    found, mine = row.get(way), row.get(ours)
    text = cell(found, percent=percent)
    beats = found is not None and mine is not None and way != ours and found.value > mine.value
    return f"**{text}**" if beats else text


def lines(*rows: tuple[Any, ...], words: bool = False) -> Iterator[str]:
    """Yield a table; the first row is its head, numbers to the right and *words* to the left."""
    head, *body = rows
    yield "| " + " | ".join(map(str, head)) + " |"
    yield "|---|" + ("---|" if words else "---:|") * (len(head) - 1)
    for row in body:
        yield "| " + " | ".join(map(str, row)) + " |"
    yield ""


def _title(table: Table) -> str:
    return table["title"] + (" †" if table["trained"] else " ‡" if table.get("unseen") else "")


def _pairs(result: Table) -> Iterator[str]:
    pairs = result["pairs"]
    if not pairs:
        return
    yield "## Claims and pairs: the models alone"
    yield ""
    yield (
        "AUROC for *it follows from its source* against everything else: the chance that a claim that follows scores "
        "above one that does not. 0.5 is a coin."
    )
    yield ""
    ways = ("lexical", "cosine", "previous", "model")
    yield from lines(
        ("set", "n", *(NAMES[way] for way in ways)),
        *((_title(t), t["n"], *(against(t["auroc"], "model", way) for way in ways)) for t in pairs.values()),
    )
    yield "AUROC for *it contradicts its source* against everything else (the baselines know only *unlike*):"
    yield ""
    yield from lines(
        ("set", "n", *(NAMES[way] for way in ways)),
        *(
            (_title(t), t["n"], *(against(t["contradiction"], "model", way) for way in ways))
            for t in pairs.values()
            if t["contradiction"]
        ),
    )
    yield "Accuracy over entailment, neutral and contradiction, where a set has all three:"
    yield ""
    yield from lines(
        ("set", "n", "commonest label", NAMES["previous"], NAMES["model"]),
        *(
            (_title(t), t["n"], f"{t['commonest']:.1%}",
             *(against(t["accuracy"], "model", way, percent=True) for way in ("previous", "model")))
            for t in pairs.values()
            if t["accuracy"]
        ),
    )  # fmt: skip
    yield (
        "Balanced accuracy (mean of the shares found right among claims that follow and claims that do not) at a "
        "threshold that is best on SNLI test and carried over; for SNLI itself the one that is best on Wiki NLI:"
    )
    yield ""
    yield from lines(
        ("set", "n", *(NAMES[way] for way in ways)),
        *(
            (_title(t), t["n"], *(against(t["balanced"], "model", way, percent=True) for way in ways))
            for t in pairs.values()
        ),
    )


def _reports(result: Table) -> Iterator[str]:
    told = {name: t for name, t in result["pairs"].items() if t.get("report", {}).get("n", 0) >= 20}
    if not told:
        return
    yield "## Claims and pairs: the whole engine"
    yield ""
    yield "The claim is the answer, its source the one fact. LOW is the risk class that costs nothing and warns of nothing."
    yield ""
    yield from lines(
        ("set", "n", "AUROC of the composite", "follows, and is LOW", "does not follow, and is LOW"),
        *(
            (_title(t), t["report"]["n"], cell(t["report"]["auroc"]), cell(t["report"]["faithful_low"], percent=True),
             cell(t["report"]["unfaithful_low"], percent=True))
            for t in told.values()
        ),
    )  # fmt: skip


def _responses(result: Table) -> Iterator[str]:
    found, every = result["responses"], result["together"]
    if not every:
        return
    ways = ("lexical", "cosine", "previous", "report")
    yield "## Answers"
    yield ""
    yield (
        f"Over all sets, {every['n']} answers: {cell(every['faithful_low'], percent=True)} of the faithful ones are LOW, and "
        f"so are {cell(every['unfaithful_low'], percent=True)} of the unfaithful ones."
    )
    yield ""
    if not found:
        return
    yield (
        "A summary is the answer, its document the one fact. AUROC of the composite for *faithful*; the baselines take "
        "the answer's weakest sentence; *previous model* is today's engine on the model before."
    )
    yield ""
    yield from lines(
        ("set", "n", *(NAMES[way] for way in ways)),
        *((_title(t), t["n"], *(against(t["aurocs"], "report", way) for way in ways)) for t in found.values()),
    )
    yield (
        "Balanced accuracy at one threshold carried over: the best on the SummEdits domains other than the one that is "
        "measured. Beside it the threshold that the engine has by itself, LOW or not:"
    )
    yield ""
    yield from lines(
        ("set", *(NAMES[way] for way in ways), "LOW or not", "faithful, and is LOW", "unfaithful, and is LOW"),
        *(
            (_title(t), *(against(t["balanced"], "report", way, percent=True) for way in ways),
             f"{(t['faithful_low'].value + 1 - t['unfaithful_low'].value) / 2:.1%}",
             cell(t["faithful_low"], percent=True), cell(t["unfaithful_low"], percent=True))
            for t in found.values()
        ),
    )  # fmt: skip
    yield "What kept faithful answers from LOW, as a share of all faithful ones (one answer may have several):"
    yield ""
    yield from lines(
        ("set", "reasons"),
        *(
            (_title(t), ", ".join(f"{name} {share:.0%}" for name, share in t["why_not_low"].items()) or "none")
            for t in found.values()
        ),
        words=True,
    )


def _distortions(result: Table) -> Iterator[str]:
    if not result["distortions"] and not result["clean"]:
        return
    yield "## Distortions (SPEC-005 §5.3)"
    yield ""
    yield (
        "One sentence of a document is bent by a rule, half of them then also told otherwise; the document around it is "
        "the fact. Documents are ANLI's contexts and RTE's texts, which the model was not trained on. *Found*: the claim "
        "is not grounded, or something is named."
    )
    yield ""
    yield from lines(
        ("type", "n", "found", "something named", "this type named", "risk not LOW"),
        *(
            (kind, t["n"], *(cell(t[key], percent=True) for key in ("noticed", "accused", "type_named", "not_low")))
            for kind, t in result["distortions"].items()
        ),
    )
    yield "False alarms on texts that say the same:"
    yield ""
    yield from lines(
        ("paraphrases", "n", "not grounded or named", "something named", "risk not LOW"),
        *(
            (kind, t["n"], *(cell(t[key], percent=True) for key in ("noticed", "accused", "not_low")))
            for kind, t in result["clean"].items()
        ),
    )


def _rest(result: Table) -> Iterator[str]:
    pii, claims = result["pii"], result["claims"]
    if pii:
        yield "## Personal data"
        yield ""
        yield (
            f"presidio_synth, {pii['n']} documents: one with an e-mail address, telephone number, card, IBAN, social "
            f"security number, IP address, driving licence or street address is found in {cell(pii['recall'], percent=True)}; "
            f"of those reported, {cell(pii['precision'], percent=True)} have one, documents with nothing but a person's name "
            f"aside (of which {cell(pii['names_flagged'], percent=True)} are reported). **The rules for street addresses and "
            "telephone numbers were written while looking at this very set**, so texts of other makers will fare worse. "
            "A person's bare name is no finding, by the definition in `interlock/dpe/pii/detection.py`."
        )
        yield ""
    if claims:
        yield "## Claims"
        yield ""
        yield (
            f"RAGTruth, {claims['n']} answers of Llama-2-7B (their sources are not to be had, so they show how answers "
            f"are cut, not how they are judged): {claims['claims_per_answer']} claims an answer, "
            f"{claims['words_per_claim']} words a claim; {cell(claims['checked'], percent=True)} of the claims are "
            f"checked; {cell(claims['answers_without_claim'], percent=True)} of the answers have no claim; "
            f"{cell(claims['spans_covered'], percent=True)} of the spans that annotators marked as made up lie in claims."
        )
        yield ""


def _meaning(result: Table) -> str:
    """Return what LOW means, with the worst figure of answers that nothing was tuned on."""
    told = {"everyday answers": result["everyday"]}
    told |= {t["title"]: t for t in result["responses"].values() if not t["trained"]}
    passed = {name: t["unfaithful_low"] for name, t in told.items() if t and not math.isnan(t["unfaithful_low"].value)}
    start = "LOW means that nothing was found, not that an answer is right"
    if not passed:
        return f"{start}."
    worst = max(passed, key=lambda name: passed[name].value)
    return (
        f"{start}: of the unfaithful answers of sets that nothing was trained on, up to {cell(passed[worst], percent=True)} are LOW "
        f"({worst}, the worst of them)."
    )


def _everyday(result: Table) -> Iterator[str]:
    found = result["everyday"]
    if not found or not found["n"]:
        return
    yield "## Everyday answers, held back"
    yield ""
    yield (
        f"{found['n']} answers over eleven fields, written for this project and read by nobody who wrote a rule: each faithful one has "
        f"a twin with one fact bent. {cell(found['faithful_low'], percent=True)} of the faithful ones are LOW, and so are "
        f"{cell(found['unfaithful_low'], percent=True)} of the unfaithful ones; AUROC of the composite {cell(found['auroc'])}."
    )
    yield ""


def _points(result: Table) -> Iterator[str]:
    points = {name: each for name, each in result["earning"]["points"].items() if each and each[0].recall.n}
    if not points:
        return
    yield "## Strictness: operating points"
    yield ""
    yield (
        "What a deployment acts on. Each setting acts on all that the one above it does. `interlock dpe calibrate` measures the same on "
        "your own labelled answers and recommends one."
    )
    yield ""
    yield from lines(
        ("answers", "strictness", "set", "unfaithful acted upon", "faithful acted upon"),
        *(
            (name, one.strictness.value, f"`{one.strictness.settings}`", cell(_figure(one.recall), percent=True),
             cell(_figure(one.false_alarms), percent=True))
            for name, each in points.items()
            for one in each
        ),
        words=True,
    )  # fmt: skip


def _figure(found: Any) -> Figure:
    return Figure(found.value, found.low, found.high, found.n)


def _earning(result: Table) -> Iterator[str]:
    found = result["earning"]["rules"]
    if not found:
        return
    yield "## Whether each rule earns its place"
    yield ""
    yield (
        "Every floor, type of distortion, slot and finding, and how many times as often it stands on an unfaithful answer as on a "
        "faithful one, over sets that nothing was trained on and no rule was tuned on (of QAGS and FaithBench half of the wrong "
        f"verdicts were once looked at): {', '.join(result['earning']['sets'])}. A rule earns its place from {rules.EARNS_FROM:g}; "
        f"with fewer than {rules.LEAST_FIRES} answers nothing is said."
    )
    yield ""
    yield from lines(
        ("rule", "on unfaithful", "on faithful", "ratio", "earns its place"),
        *(
            (one["name"], f"{one['unfaithful']} of {one['of_unfaithful']}", f"{one['faithful']} of {one['of_faithful']}",
             f"{one['ratio']:.1f} ({one['low']:.1f}–{one['high']:.1f})", one["earns"])
            for one in found
        ),
        words=True,
    )  # fmt: skip


def _about(run: Table, result: Table) -> Iterator[str]:
    yield "# How good the engine is"
    yield ""
    yield _meaning(result)
    yield ""
    yield "Written by `make quality`; do not edit. Every figure has a 95 % interval in brackets behind it."
    yield ""
    if run["partial"]:
        yield f"**This run was cut short**: {run['partial']}. What is here was measured; what is missing was not."
        yield ""
    yield from lines(
        ("what", "which"),
        *((f"model, {one['slot']}", f"{one['name']}, `{one['hash']}`, {one['runtime']}") for one in run["models"]),
        ("previous model", run["previous"]),
        ("attribution", run["method"]),
        ("run", f"{run['date']}, {run['minutes']:.1f} minutes, {run['size']}"),
        ("machine", run["machine"]),
        ("versions", run["versions"]),
        words=True,
    )
    yield (
        "† rows like these were trained on, so the figure flatters. ‡ other rows over the same texts or of the same making were. "
        "**Bold**: a baseline that beats us. *words*: share of the claim's words in its source. *cosine*: embeddings of "
        "the bundled model."
    )
    yield ""
    yield "## Against what was aimed at"
    yield ""
    yield from lines(("aim", "target", "measured", "met"), *targets(result))


def _method(run: Table, result: Table) -> Iterator[str]:
    yield "## How it is measured"
    yield ""
    yield from (
        "- Rows are drawn in an order that only a set's name decides; a larger sample holds the smaller one.",
        (
            "- Shares have Wilson's interval; AUROC and balanced accuracy are resampled, positives and negatives apart, "
            "with a fixed seed."
        ),
        (
            "- A source that does not fit the model is cut to the 110 words that share most with the claim for the models "
            "alone and for the baselines. The engine gets all of it."
        ),
        (
            "- FaithBench: consistent or benign at worst is faithful, unwanted at worst is not, questionable is left out. "
            "QAGS: a summary is faithful when most annotators say so of each sentence."
        ),
        (
            "- Of half of the cases of CONTEXT_STRIPPED, of the paraphrases and of the answers, the wrong verdicts were looked "
            "at while the rules were written; those of the other half were not."
        ),
        "- Sets without a licence (tier B) and non-commercial ones (tier C) are measured and never trained on.",
        (
            "- Kept out of this folder, and measured by nobody here: half of MNLI-matched, four SummEdits domains, the test "
            "splits of FM2, HealthVer, FEVER-Symmetric, WiCE and BEGIN, half of BUMP and FaithBench."
        ),
    )
    every = {**result["pairs"], **result["responses"]}
    yield from (f"- ‡ {t['title']}: {t['unseen']}." for t in every.values() if t["unseen"])
    if run["refused"]:
        yield f"- Refused by the engine and left out: {run['refused']}."
    short = [name for name, (done, _) in result["rows"].items() if done < 20]
    if short:
        yield f"- Too few rows to tell anything, and left out: {', '.join(sorted(short))}."
    yield ""
    if every:
        yield from lines(
            ("set", "tier", "licence", "rows like these trained on"),
            *((t["title"], t["tier"], t["licence"], "yes" if t["trained"] else "no") for t in every.values()),
            words=True,
        )


def document(run: Table, result: Table) -> str:
    """Return the page."""
    parts = [
        *_about(run, result),
        "## What it is bad at",
        "",
        *(f"- {sentence}" for sentence in weak.sentences(result)),
        "",
        *_everyday(result),
        *_points(result),
        *_earning(result),
        *_distortions(result),
        *_responses(result),
        *_pairs(result),
        *_reports(result),
        *_rest(result),
        *_method(run, result),
    ]
    return "\n".join(parts).rstrip() + "\n"
