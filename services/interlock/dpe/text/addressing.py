"""Detection of answer text that addresses the judge (SPEC-005 §21.2, reliability.md A-25).

An answer has no reason to dictate a verdict to a model, to revoke instructions, or to imitate prompt markup. The NLI
model scores pairs of texts and follows no instructions, so such text gains little. But its presence shows that the
answer was made to pass, and a floor keeps the risk above LOW. An answer that quotes an injection to explain it is
treated the same: for a model downstream a quotation makes no difference.
"""

from __future__ import annotations

from typing import Any

from interlock.dpe.text.patterns import pattern

_EARLIER = (
    r"(?:(?:all|any|each|every|of|the|these|those|your|my|our|other|further|given|safety|system|content|original"
    r"|initial)\s+){0,5}"
)
_ORDERS = (
    r"(?:instructions?|prompts?|rules|guidelines|guardrails|directives?|directions|messages?|safety\s+(?:checks?|rules)"
    r"|polic(?:y|ies)|system\s+prompts?)"
)
_VERDICT = (
    r"(?:entailed|entailment|entails|context[_ -]grounded|non-?\s?hallucinat(?:ed|ion)"
    r"|not\s+(?:an?\s+)?hallucinat\p{L}+"
    r"|(?:risk|hallucination|faithfulness|grounding|entailment|fidelity)[_ ](?:level|score)s?"
    r"(?:\s+(?:of|as|is|to|at))?[\s:=]*(?:low|zero|none|0|1(?:\.0)?|perfect|maxim\p{L}+|100)|low[- ]risk|risk[- ]free)"
)
_FINE = (
    rf"(?:{_VERDICT}|(?:fully\s+)?(?:grounded|supported|faithful|factual)"
    r"|correct|true|verified|accurate|safe|low\s+risk)"
)
_JUDGES = (
    r"(?:(?:ai|llm|nli|automated|automatic|language[- ]model|machine)\s+(?:judges?|evaluators?|graders?|checkers?"
    r"|reviewers?|models?|systems?|detectors?|classifiers?|verifiers?)|evaluators?|graders?|fact[- ]?checkers?"
    r"|verifiers?|classifiers?"
    r"|(?:hallucination|injection)\s+(?:detectors?|checkers?)|(?:entailment|scoring|safety|judge)\s+(?:models?|systems?"
    r"|filters?|checkers?)|guardrails?|provenance\s+engine)"
)
_SAID = (
    r"(?:claims?|statements?|responses?|answers?|outputs?|texts?|sentences?|everything|content|information|passages?)"
)
_TAKEN = r"(?:treat|consider|regard|accept|classify|label|mark|score|rate|deem|judge|approve|report|flag|count)"

_PATTERNS = tuple(
    pattern(expression, ignore_case=True)
    for expression in (
        # Revokes earlier instructions.
        (
            rf"(?:^|[^\p{{L}}])(?:ignore|disregard|forget|override|bypass|neglect)\s+{_EARLIER}"
            rf"(?:previous|prior|above|earlier|preceding|foregoing|former)\s+{_EARLIER}{_ORDERS}"
        ),
        (
            rf"(?:^|[^\p{{L}}])(?:ignore|disregard|forget|override|bypass)\s+(?:all|any|every|your|the\s+system)\s+"
            rf"(?:of\s+)?(?:your\s+|the\s+|other\s+)?{_ORDERS}"
        ),
        (
            r"(?:ignore|disregard|forget)\s+(?:everything|anything|all|what\p{L}*)\s+(?:that\s+)?(?:\p{L}+\s+){0,4}"
            r"(?:above|before\s+this|said\s+so\s+far|(?:told|given)\s+(?:to\s+)?you)"
        ),
        # Dictates the verdict.
        (
            r"\b(?:answer|output|respond|reply|return|print|say|write|classify|label|mark|rate|score|assign"
            rf"|predict|choose|select|give|judge|set)\b[^.!?\n]{{0,80}}\b{_VERDICT}\b"
        ),
        (
            rf"\b{_SAID}\b[^.!?\n]{{0,40}}\b(?:must|should|shall|has\s+to|have\s+to|needs?\s+to|is\s+to"
            r"|are\s+to)\s+(?:\p{L}+\s+)?be\s+"
            r"(?:treated|considered|classified|labell?ed|marked|scored|rated|judged|deemed|accepted|regarded"
            r"|approved|counted)"
            rf"\b[^.!?\n]{{0,40}}\b{_FINE}\b"
        ),
        (
            rf"(?:^|[.!?:;>\n]\s*|\bplease\s+|\byou\s+(?:must|should)\s+){_TAKEN}\s+(?:all|any|every|each|this|these"
            rf"|the\s+(?:above|following|whole|entire|text|claims?|response|answer|output)|everything)\b[^.!?\n]{{0,60}}\b{_FINE}\b"
        ),
        (
            r"\b(?:label|verdict|judge?ment|prediction|nli|attribution)[\"']?\s*[:=]\s*[\"']?(?:entail\p{L}*"
            r"|context_grounded|grounded|supported|not_?hallucinated)\b"
        ),
        r"\b(?:hallucination_?risk|composite_?score|grounding_?pct|entailment_?score|fidelity_?score)[\"']?\s*[:=]",
        # Addresses the judge.
        (
            rf"\b(?:note|message|instructions?|attention|dear|hello|hey|addressed|notice)\s*[,:]?\s*(?:to|for)?\s*"
            rf"(?:the\s+|any\s+|all\s+|our\s+)?{_JUDGES}\b"
        ),
        r"\b(?:note|message|instructions?|notice)\s+(?:to|for)\s+(?:the\s+|any\s+)?judges?\s*:",
        rf"\b(?:if|since|because|as)\s+you\s+are\s+(?:an?|the)\s+(?:ai|llm|language\s+model|judge|{_JUDGES})\b",
        rf"\byou\s+are\s+(?:now\s+|hereby\s+)?(?:an?|the)\s+(?:\p{{L}}+\s+)?(?:judge|{_JUDGES})\b",
        (
            rf"\b{_JUDGES}\s*[,:]\s*(?:please\s+)?(?:you\s+(?:must|should)\s+)?"
            rf"(?:{_TAKEN}|answer|output|respond|ignore|return|pass|skip)\b"
        ),
        # Markup of prompts, and headers of this protocol.
        r"<\|(?:im_start|im_end|system|user|assistant|endoftext|end_of_text|eot_id|start_header_id|begin_of_text)\|>",
        r"\[/?INST\]|<</?SYS>>|<start_of_turn>|<end_of_turn>",
        r"(?:^|\n)\s{0,3}#{2,4}\s*(?:system|instruction|new\s+instructions?)\s*:",
        (
            r"\bCRP-(?:Safety|Provenance|Quality|Compliance|Context|Session|Continuation|Agent)"
            r"-[A-Za-z]+(?:-[A-Za-z]+){0,6}\s*:"
        ),
        # The first pattern in other languages.
        (
            r"ignor(?:iere|ieren\s+sie|ez|e|a|en|ar)\s+(?:alle\s+|toutes\s+|todas\s+|tutte\s+)?"
            r"(?:die\s+|les\s+|las\s+|le\s+|as\s+)?"
            r"(?:(?:vorherigen|bisherigen|obigen)\s+(?:anweisungen|regeln)|instructions\s+pr[eé]c[eé]dentes"
            r"|instrucciones\s+(?:anteriores|previas)|istruzioni\s+precedenti|instru[cç][oõ]es\s+anteriores)"
        ),
        r"(?:忽略|无视|忘记)[^。！？\n]{0,10}(?:之前|以上|先前|上述)[^。！？\n]{0,6}(?:指令|指示|说明|提示)",
        r"игнорируй(?:те)?\s+(?:все\s+)?(?:предыдущие|прежние)\s+(?:инструкции|указания)",
        r"(?:これまで|以前|上記)の(?:指示|命令)(?:を|は)(?:すべて)?(?:無視|忘れ)",
    )
)
_NEGATED = pattern(r"(?:\bnot|\bnever|n't|n’t|\bcannot|\bwithout)\s+(?:to\s+)?$", ignore_case=True)
_LOOK_BACK = 16


def addressed(text: str) -> int:
    """Return how often a text addresses the judge. A warning ("do not ignore ...") does not count."""
    return sum(not _is_warning(text, match) for expression in _PATTERNS for match in expression.finditer(text))


def _is_warning(text: str, match: Any) -> bool:
    start: int = match.start()
    while start < len(text) and not text[start].isalpha():
        start += 1
    return _NEGATED.search(text[max(0, start - _LOOK_BACK) : start]) is not None
