"""The forms in which nli_twins.py tells a parsed sentence: faithfully, and with its words in the wrong slots."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Any, ClassVar

from lemminflect import getInflection
from nli_distortions import CONTRADICTED, ENTAILED, NOT_ENTAILED
from nli_wordnet import Words

Told = tuple[str, str, int]

SYMMETRIC = frozenset(
    ("meet", "marry", "equal", "match", "resemble", "join", "combine", "include", "contain", "be", "have")
)
QUANTIFIED = {
    "some": (("all", NOT_ENTAILED),), "most": (("all", NOT_ENTAILED), ("few", CONTRADICTED)),
    "many": (("few", CONTRADICTED),), "few": (("many", CONTRADICTED),), "all": (("only some", CONTRADICTED), ("some", ENTAILED)),
    "every": (("each", ENTAILED), ("almost no", CONTRADICTED)), "both": (("neither of the", CONTRADICTED),),
    "no": (("some", CONTRADICTED),), "at least": (("no fewer than", ENTAILED), ("at most", NOT_ENTAILED)),
    "at most": (("no more than", ENTAILED), ("at least", NOT_ENTAILED)), "up to": (("at most", ENTAILED), ("at least", NOT_ENTAILED)),
    "more than": (("over", ENTAILED), ("less than", CONTRADICTED)), "less than": (("under", ENTAILED), ("more than", CONTRADICTED)),
    "usually": (("always", NOT_ENTAILED),), "often": (("always", NOT_ENTAILED), ("rarely", CONTRADICTED)),
    "sometimes": (("always", NOT_ENTAILED), ("never", CONTRADICTED)), "always": (("often", ENTAILED), ("rarely", CONTRADICTED)),
    "never": (("often", CONTRADICTED),), "only": (("", NOT_ENTAILED),),
}  # fmt: skip
MODALS = {
    "must": (("need not", CONTRADICTED), ("has to", ENTAILED), ("may", NOT_ENTAILED)), "may": (("must", NOT_ENTAILED), ("might", ENTAILED)),
    "can": (("cannot", CONTRADICTED), ("is able to", ENTAILED)), "shall": (("need not", CONTRADICTED), ("may", NOT_ENTAILED)),
    "will": (("will never", CONTRADICTED), ("is going to", ENTAILED)), "should": (("should not", CONTRADICTED), ("ought to", ENTAILED)),
    "cannot": (("can", CONTRADICTED),), "might": (("will", NOT_ENTAILED), ("may", ENTAILED)), "could": (("will", NOT_ENTAILED),),
}  # fmt: skip
DEGREES = "larger smaller|bigger smaller|higher lower|older younger|faster slower|longer shorter|greater less|heavier lighter|earlier later|better worse|stronger weaker|richer poorer|deeper shallower|wider narrower|cheaper dearer"
TURNED = {a: b for pair in DEGREES.split("|") for a, b in (pair.split(), pair.split()[::-1])}
DROPPABLE = frozenset(("because", "although", "though", "while", "as", "since", "after", "before", "when"))
CONDITIONS = frozenset(("if", "unless", "until", "once", "provided"))
KEPT_LABELS = frozenset((
    "PERSON", "ORG", "GPE", "LOC", "NORP", "DATE", "TIME", "MONEY", "PERCENT", "QUANTITY", "CARDINAL", "ORDINAL", "FAC",
    "PRODUCT", "EVENT",
))  # fmt: skip


def upper(text: str) -> str:
    """Return the text with a capital first."""
    return text[:1].upper() + text[1:]


def lower(text: str, token: Any) -> str:
    """Return the text as it stands inside a sentence: its first word keeps a capital only if it is a name."""
    return text if token.pos_ == "PROPN" or token.text == "I" or token.text.isupper() else text[:1].lower() + text[1:]


def phrase(head: Any) -> Any:
    """Return the span of a head and all below it."""
    return head.doc[head.left_edge.i : head.right_edge.i + 1]


def exchanged(sent: Any, one: Any, other: Any) -> str:
    """Return the sentence with two of its spans in each other's places."""
    first, second = sorted((one, other), key=lambda span: int(span.start))
    text, start = sent.text, sent.start_char
    a, b = lower(first.text, first[0]), lower(second.text, second[0])
    made = (
        text[: first.start_char - start]
        + b
        + text[first.end_char - start : second.start_char - start]
        + a
        + text[second.end_char - start :]
    )
    return upper(made) if sent.text[:1].isupper() else made


def put(sent: Any, span: Any, new: str) -> str:
    """Return the sentence with a span replaced; a capital stays where one was."""
    start = sent.start_char
    made = sent.text[: span.start_char - start] + new + sent.text[span.end_char - start :]
    made = re.sub(r"\s+", " ", made).strip()
    return upper(made) if sent.text[:1].isupper() else made


def child(token: Any, *names: str) -> Any:
    """Return the first child with one of these relations, or None."""
    return next((below for below in token.children if below.dep_ in names), None)


def plural(token: Any) -> bool:
    """Whether a noun phrase takes a plural verb."""
    return token.tag_ in ("NNS", "NNPS") or child(token, "conj") is not None


def nominal(token: Any) -> bool:
    """Whether a token heads a noun phrase short enough to stand elsewhere."""
    if token is None or token.pos_ not in ("NOUN", "PROPN"):
        return False
    span = phrase(token)
    return len(span) <= 9 and not any(below.dep_ in ("relcl", "acl", "appos") for below in span)


class Twins:
    """Makes the tellings of one parsed sentence."""

    POS: ClassVar = {"NOUN": "n", "VERB": "v", "ADJ": "a", "ADV": "r"}

    def __init__(self, words: Words, chance: random.Random) -> None:
        self.words, self.chance = words, chance

    def tellings(self, sent: Any, doc: Any) -> Iterator[Told]:
        """Yield (kind, text, label) of a sentence within its passage."""
        for make in (self.roles, self.passives, self.clauses, self.subjects, self.compared, self.directions):
            yield from make(sent)
        yield from self.names(sent, doc)
        yield from self.lexical(sent)
        yield from self.modal(sent)
        yield from self.quantified(sent)
        yield from self.negated(sent)
        yield from self.asides(sent)

    def roles(self, sent: Any) -> Iterator[Told]:
        """Active clauses: subject and object exchanged, and both told as a passive."""
        for verb in sent:
            subject, thing = child(verb, "nsubj"), child(verb, "dobj")
            if verb.pos_ != "VERB" or verb.lemma_ in SYMMETRIC or not nominal(subject) or not nominal(thing):
                continue
            if verb.tag_ not in ("VBD", "VBZ", "VBP") or any(below.dep_ in ("neg", "aux") for below in verb.children):
                continue
            named = subject.pos_ == thing.pos_ == "PROPN"
            label = CONTRADICTED if named else NOT_ENTAILED
            past = verb.tag_ == "VBD"
            a, b = phrase(subject), phrase(thing)
            if past or plural(subject) == plural(thing):
                yield "roles", exchanged(sent, a, b), label
                yield "roles", sent.text, ENTAILED
            participle = next(iter(getInflection(verb.lemma_, "VBN")), None)
            if participle is None or child(verb, "prt", "dative", "ccomp", "xcomp"):
                continue
            x, y = lower(a.text, a[0]), lower(b.text, b[0])
            forms = [(x, y, subject, thing, label), (y, x, thing, subject, ENTAILED)]
            for first, by, head, _, truth in forms:
                many = plural(head)
                verb_be = ("were" if many else "was") if past else ("are" if many else "is")
                yield "roles passive", upper(f"{first} {verb_be} {participle} by {by}."), truth
            if past:
                yield "roles short", upper(f"{x} {verb.text} {y}."), ENTAILED
                yield "roles short", upper(f"{y} {verb.text} {x}."), label

    def passives(self, sent: Any) -> Iterator[Told]:
        """Passive clauses with an agent: exchanged, and both told as active clauses."""
        for verb in sent:
            subject, by = child(verb, "nsubjpass"), child(verb, "agent")
            agent = child(by, "pobj") if by is not None else None
            if not nominal(subject) or not nominal(agent):
                continue
            label = CONTRADICTED if subject.pos_ == agent.pos_ == "PROPN" else NOT_ENTAILED
            a, b = phrase(subject), phrase(agent)
            if plural(subject) == plural(agent):
                yield "roles", exchanged(sent, a, b), label
                yield "roles", sent.text, ENTAILED
            past = next(iter(getInflection(verb.lemma_, "VBD")), None)
            if past and child(verb, "auxpass") is not None and child(verb, "auxpass").text in ("was", "were"):
                x, y = lower(a.text, a[0]), lower(b.text, b[0])
                yield "roles active", upper(f"{y} {past} {x}."), ENTAILED
                yield "roles active", upper(f"{x} {past} {y}."), label

    def clauses(self, sent: Any) -> Iterator[Told]:
        """Clauses with a condition, a cause or an order: turned round, put in front, left out."""
        for head in sent:
            mark = child(head, "mark") or next(
                (t for t in head.children if t.dep_ == "advmod" and t.lower_ == "when"), None
            )
            if head.dep_ != "advcl" or mark is None or head.head.dep_ != "ROOT":
                continue
            span = phrase(head)
            if span[0] != mark or len(span) < 4 or child(head, "nsubj", "nsubjpass", "expl") is None:
                continue
            front, back = span.start == sent.start, span.end >= sent.end - 1
            if front == back:
                continue
            rest = sent[len(span) :] if front else sent[: len(sent) - len(span) - (sent[-1].is_punct)]
            main = rest.text.strip(" ,.;").strip()
            under = sent.doc[span.start + 1 : span.end].text.strip(" ,.;")
            if len(main.split()) < 3 or not under or child(head.head, "nsubj", "nsubjpass", "expl") is None:
                continue
            first = next((t for t in rest if not t.is_punct), rest[0])
            inner, word = lower(main, first), mark.lower_
            below = lower(under, span[1]) if len(span) > 1 else under
            yield from self.turned(word, inner, below)

    def turned(self, word: str, inner: str, below: str) -> Iterator[Told]:
        """Yield the tellings of a main clause and a clause under a word such as *if*."""
        yield "clause", upper(f"{word} {below}, {inner}."), ENTAILED
        yield "clause", upper(f"{inner} {word} {below}."), ENTAILED
        if word in CONDITIONS | {"because", "before", "after", "although", "when"}:
            truth = CONTRADICTED if word in ("before", "after") else NOT_ENTAILED
            yield "clause", upper(f"{word} {inner}, {below}."), truth
            yield "clause", upper(f"{below} {word} {inner}."), truth
        if word in CONDITIONS:
            yield "condition", upper(f"{inner}."), NOT_ENTAILED
            other = "unless" if word == "if" else "if"
            yield "condition", upper(f"{inner} {other} {below}."), CONTRADICTED
            yield "condition", upper(f"{inner} whether or not {below}."), NOT_ENTAILED
        elif word in DROPPABLE:
            yield "condition", upper(f"{inner}."), ENTAILED
        if word in ("before", "after"):
            other = "after" if word == "before" else "before"
            yield "order", upper(f"{below} {other} {inner}."), ENTAILED
            yield "order", upper(f"{inner} {other} {below}."), CONTRADICTED
        if word == "because":
            yield "cause", upper(f"{inner} although {below}."), NOT_ENTAILED
            yield "cause", upper(f"{below}, so {inner}."), ENTAILED
            yield "cause", upper(f"{inner}, so {below}."), NOT_ENTAILED

    def subjects(self, sent: Any) -> Iterator[Told]:
        """Two clauses side by side: each alone, and each with the other's subject."""
        root = sent.root
        for head in root.children:
            one, other = child(root, "nsubj", "nsubjpass"), child(head, "nsubj", "nsubjpass")
            if head.dep_ != "conj" or not nominal(one) or not nominal(other) or one.lemma_ == other.lemma_:
                continue
            joint = next((t for t in root.children if t.dep_ == "cc" and t.i < head.left_edge.i + 1), None)
            if joint is None or joint.lower_ not in ("and", "but", "while"):
                continue
            left = sent.doc[sent.start : joint.i].text.strip(" ,;")
            right = sent.doc[head.left_edge.i : sent.end].text.strip(" ,;.")
            if plural(one) == plural(other):
                yield "subjects", exchanged(sent, phrase(one), phrase(other)), CONTRADICTED
                yield "subjects", sent.text, ENTAILED
            yield "clause alone", f"{left}.", ENTAILED
            yield "clause alone", upper(f"{right}."), ENTAILED
            if phrase(one).start == sent.start and phrase(other).start == head.left_edge.i:
                a, b = phrase(one), phrase(other)
                yield "clause alone", upper(f"{lower(b.text, b[0])}{left[len(a.text) :]}."), CONTRADICTED
                yield "clause alone", upper(f"{lower(a.text, a[0])}{right[len(b.text) :]}."), CONTRADICTED

    def compared(self, sent: Any) -> Iterator[Told]:
        """Comparisons: their sides exchanged, and told from the other side."""
        for than in sent:
            if than.lower_ != "than" or child(than, "pobj") is None:
                continue
            degree = than.head
            verb = degree.head
            subject, other = child(verb, "nsubj"), child(than, "pobj")
            if not nominal(subject) or not nominal(other) or plural(subject) != plural(other):
                continue
            a, b = phrase(subject), phrase(other)
            yield "compared", exchanged(sent, a, b), CONTRADICTED
            yield "compared", sent.text, ENTAILED
            if turned := TURNED.get(degree.lower_):
                yield "compared", put(sent, sent.doc[degree.i : degree.i + 1], turned), CONTRADICTED
                if verb.lemma_ == "be":
                    x, y = lower(a.text, a[0]), lower(b.text, b[0])
                    yield "compared", upper(f"{y} {verb.text} {turned} than {x}."), ENTAILED

    def directions(self, sent: Any) -> Iterator[Told]:
        """From one to another: exchanged."""
        for word in sent:
            if word.lower_ != "from" or word.dep_ != "prep":
                continue
            to = next((t for t in (*word.head.children, *word.children) if t.lower_ == "to" and t.dep_ == "prep"), None)
            one, other = child(word, "pobj"), child(to, "pobj") if to is not None else None
            if one is None or other is None or one.i >= other.i or one.lower_ == other.lower_:
                continue
            a = sent.doc[one.left_edge.i : one.i + 1]
            b = sent.doc[other.left_edge.i : other.i + 1]
            yield "direction", exchanged(sent, a, b), CONTRADICTED
            yield "direction", sent.text, ENTAILED

    def names(self, sent: Any, doc: Any) -> Iterator[Told]:
        """Names, values and dates: one that the passage binds elsewhere in the place of another."""
        inside = [entity for entity in doc.ents if entity.label_ in KEPT_LABELS]
        mine = [entity for entity in inside if sent.start <= entity.start and entity.end <= sent.end]
        self.chance.shuffle(mine)
        for entity in mine[:2]:
            kin = [
                other for other in inside
                if other.label_ == entity.label_ and entity.text.lower() not in other.text.lower()
                and other.text.lower() not in entity.text.lower()
            ]  # fmt: skip
            if not kin:
                continue
            other = self.chance.choice(kin)
            together = sent.start <= other.start and other.end <= sent.end
            joined = (
                other.root in (*entity.root.conjuncts,) or entity.root.dep_ == "appos" or other.root.dep_ == "appos"
            )
            if together and joined:
                continue
            made = exchanged(sent, entity, other) if together else put(sent, entity, other.text)
            yield f"names {entity.label_}", made, CONTRADICTED
            yield f"names {entity.label_}", sent.text, ENTAILED

    def lexical(self, sent: Any) -> Iterator[Told]:
        """One word changed to its opposite, to a sibling, or to a word of the same meaning."""
        tokens = [token for token in sent if token.pos_ in self.POS and token.is_alpha and token.text.islower()]
        self.chance.shuffle(tokens)
        made = 0
        for token in tokens:
            key = (self.POS[token.pos_], token.lemma_)
            span = sent.doc[token.i : token.i + 1]
            for kind, table, label in (
                ("opposite", self.words.opposites, CONTRADICTED),
                ("same word", self.words.same, ENTAILED),
                ("sibling", self.words.beside, NOT_ENTAILED),
            ):
                options = table.get(key)
                if not options or (kind == "sibling" and (key[0] != "n" or self.chance.random() < 0.7)):
                    continue
                new = self.chance.choice(options)
                form = next(iter(getInflection(new, token.tag_)), None) if token.lemma_ != token.text else new
                if form and form not in doc_words(sent.doc):
                    yield kind, put(sent, span, form), label
                    made += 1
            if made >= 2:
                return

    def modal(self, sent: Any) -> Iterator[Told]:
        """Duties, rights and what is possible."""
        for token in sent:
            if token.tag_ != "MD" or token.lower_ not in MODALS or child(token.head, "neg") is not None:
                continue
            if token.i + 1 >= len(sent.doc) or token.nbor(1).pos_ != "VERB":
                continue
            subject = child(token.head, "nsubj", "nsubjpass")
            for new, label in MODALS[token.lower_]:
                words = new
                if subject is not None and (plural(subject) or subject.lower_ in ("you", "they", "we")):
                    words = (
                        words.replace("has to", "have to")
                        .replace("is able", "are able")
                        .replace("is going", "are going")
                    )
                yield "modal", put(sent, sent.doc[token.i : token.i + 1], words), label
            yield "modal", sent.text, ENTAILED
            return

    def quantified(self, sent: Any) -> Iterator[Told]:
        """How many, how often, at least and at most."""
        found = [(match, words) for words in QUANTIFIED for match in re.finditer(rf"\b{words}\b", sent.text)]
        if not found:
            return
        match, words = self.chance.choice(found)
        for new, label in QUANTIFIED[words]:
            made = re.sub(r"\s+", " ", sent.text[: match.start()] + new + sent.text[match.end() :])
            yield "quantity", made, label
        yield "quantity", sent.text, ENTAILED

    def negated(self, sent: Any) -> Iterator[Told]:
        """A negation put in or taken away."""
        root = sent.root
        none = child(root, "neg")
        if none is not None:
            span = sent.doc[none.i : none.i + 1]
            if none.lower_ in ("not", "never"):
                yield "negation", put(sent, span, ""), CONTRADICTED
                yield "negation", sent.text, ENTAILED
            return
        helper = child(root, "aux", "auxpass")
        if root.pos_ == "AUX" or helper is not None:
            at = root if root.pos_ == "AUX" else helper
            new = f"{at.text} {self.chance.choice(('not', 'never', 'not'))}"
            yield "negation", put(sent, sent.doc[at.i : at.i + 1], new), CONTRADICTED
        elif root.tag_ in ("VBD", "VBZ", "VBP"):
            do = {"VBD": "did", "VBZ": "does", "VBP": "do"}[root.tag_]
            yield "negation", put(sent, sent.doc[root.i : root.i + 1], f"{do} not {root.lemma_}"), CONTRADICTED

    def asides(self, sent: Any) -> Iterator[Told]:
        """The sentence itself, and without what it says by the way."""
        yield "copy", sent.text, ENTAILED
        made = re.sub(r"\s*\([^()]{1,80}\)", "", sent.text)
        made = re.sub(r", (?:which|who|where)[^,]{4,90},", "", made)
        if made != sent.text:
            yield "aside", made, ENTAILED
        for token in sent:
            if token.dep_ == "appos" and nominal(token.head) and len(phrase(token)) <= 8:
                name, what = sent.doc[token.head.left_edge.i : token.head.i + 1], phrase(token)
                yield "aside", upper(f"{lower(name.text, name[0])} is {lower(what.text, what[0])}."), ENTAILED
                return


def doc_words(doc: Any) -> set[str]:
    """Return the words of a passage, in lower case."""
    return {token.lower_ for token in doc}
