"""The parse of a text as plain Python objects.

A dozen readers ask the same few attributes of every word again and again. Each such question to spaCy makes a new token or looks a
string up; here it is an attribute of an object that is made once. Names and meanings are spaCy's (https://spacy.io/api/token,
https://spacy.io/api/span, https://spacy.io/api/doc), as far as the engine uses them. A word is one object: two of them are the same
word where they are identical, and what is remembered of a word goes with its parse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from sys import intern
from typing import Any, overload

# Heads of noun chunks by their label, as spaCy's English grammar has them.
_CHUNKS = frozenset({"oprd", "nsubj", "dobj", "nsubjpass", "pcomp", "pobj", "dative", "appos", "attr", "ROOT"})
_NOMINAL = frozenset({"NOUN", "PROPN", "PRON"})


class ParseWord:
    """A word of a parse: spaCy's ``Token``. ``memo`` holds what readers derived from it."""

    __slots__ = (
        "_subtree",
        "children",
        "dep_",
        "doc",
        "ent_type_",
        "head",
        "i",
        "idx",
        "is_alpha",
        "is_digit",
        "is_punct",
        "is_quote",
        "is_space",
        "is_upper",
        "left_edge",
        "lefts",
        "lemma_",
        "like_email",
        "like_num",
        "like_url",
        "lower_",
        "memo",
        "pos_",
        "right_edge",
        "sent",
        "tag_",
        "text",
        "text_with_ws",
        "whitespace_",
    )  # fmt: skip

    children: tuple[ParseWord, ...]
    head: ParseWord
    left_edge: ParseWord
    right_edge: ParseWord
    sent: ParseSpan

    def __init__(self, doc: ParseTree, token: Any) -> None:
        """Take over what a spaCy token says of itself; its neighbours come in ``ParseTree``."""
        self.doc = doc
        self.i: int = token.i
        self.idx: int = token.idx
        self.text: str = token.text
        self.whitespace_: str = token.whitespace_
        self.text_with_ws: str = token.text_with_ws
        lower, lemma = token.lower_, token.lemma_
        self.lower_: str = self.text if lower == self.text else lower
        self.lemma_: str = self.lower_ if lemma == lower else lemma
        self.pos_, self.tag_, self.dep_ = intern(token.pos_), intern(token.tag_), intern(token.dep_)
        self.ent_type_: str = token.ent_type_
        self.is_alpha: bool = token.is_alpha
        self.is_digit: bool = token.is_digit
        self.is_punct: bool = token.is_punct
        self.is_quote: bool = token.is_quote
        self.is_space: bool = token.is_space
        self.is_upper: bool = token.is_upper
        self.like_num: bool = token.like_num
        self.like_url: bool = token.like_url
        self.like_email: bool = token.like_email
        self.lefts: tuple[ParseWord, ...] = ()
        self.memo: dict[Callable[..., Any], Any] = {}
        self._subtree: tuple[ParseWord, ...] | None = None

    def __len__(self) -> int:
        """Return its number of characters."""
        return len(self.text)

    def __str__(self) -> str:
        """Return its text."""
        return self.text

    __repr__ = __str__

    @property
    def subtree(self) -> tuple[ParseWord, ...]:
        """The word and all that depends on it, in the order of the tree: left, itself, right."""
        if self._subtree is None:
            found: list[ParseWord] = []
            waiting: list[tuple[ParseWord, bool]] = [(self, False)]
            while waiting:  # not by recursion: a hostile text may be as deep as it is long
                word, opened = waiting.pop()
                if opened or not word.children:
                    found.append(word)
                    continue
                rights = word.children[len(word.lefts) :]
                waiting.extend((child, False) for child in reversed(rights))
                waiting.append((word, True))
                waiting.extend((child, False) for child in reversed(word.lefts))
            self._subtree = tuple(found)
        return self._subtree

    @property
    def ancestors(self) -> Iterator[ParseWord]:
        """Its head, the head of that, and so on to the root."""
        above, word = self.head, self
        while above is not word:
            yield above
            above, word = above.head, above

    def is_ancestor(self, other: ParseWord) -> bool:
        """Whether *other* depends on it, through however many words."""
        return any(above is self for above in other.ancestors)

    def nbor(self, distance: int = 1) -> ParseWord:
        """Return the word so many places on. Raises IndexError outside the text."""
        place = self.i + distance
        if place < 0:
            raise IndexError(place)
        return self.doc.words[place]


class ParseSpan:
    """Words in a row: spaCy's ``Span``. *label*: the kind of a named entity."""

    __slots__ = ("_words", "doc", "end", "label_", "start")

    def __init__(self, doc: ParseTree, start: int, end: int, label: str = "") -> None:
        """Take the words from *start* to before *end*."""
        self.doc, self.start, self.end, self.label_ = doc, start, end, label
        self._words = doc.words[start:end]

    def __iter__(self) -> Iterator[ParseWord]:
        """Iterate over its words."""
        return iter(self._words)

    def __len__(self) -> int:
        """Return its number of words."""
        return len(self._words)

    @overload
    def __getitem__(self, place: int) -> ParseWord: ...

    @overload
    def __getitem__(self, place: slice) -> ParseSpan: ...

    def __getitem__(self, place: int | slice) -> ParseWord | ParseSpan:
        """Return the word at a place of the span, or the span of a slice."""
        if isinstance(place, slice):
            start, end, _ = place.indices(len(self._words))
            return ParseSpan(self.doc, self.start + start, self.start + max(start, end))
        return self._words[place]

    def __eq__(self, other: object) -> bool:
        """Whether it is the same words of the same parse, under the same label."""
        return isinstance(other, ParseSpan) and self._key() == other._key()

    def __hash__(self) -> int:
        """Return a hash of what it equals by."""
        return hash(self._key())

    def _key(self) -> tuple[int, int, int, str]:
        return id(self.doc), self.start, self.end, self.label_

    @property
    def text(self) -> str:
        """Its characters, without the space behind it."""
        if not self._words:
            return ""
        return self.doc.text[self.start_char : self.end_char]

    @property
    def start_char(self) -> int:
        """Where it begins in the text."""
        return self._words[0].idx if self._words else 0

    @property
    def end_char(self) -> int:
        """Where it ends in the text."""
        return self._words[-1].idx + len(self._words[-1].text) if self._words else 0

    @property
    def root(self) -> ParseWord:
        """The first root of a sentence in it, or else the first word nearest to one; a mark only where there is nothing else."""
        root = next((word for word in self._words if word.head is word), None)
        if root is None:
            outer = [word for word in self._words if not self.start <= word.head.i < self.end]
            root = min(outer, key=_far_from_root, default=self._words[0])
        return root

    @property
    def sent(self) -> ParseSpan:
        """The sentence of its first word."""
        return self._words[0].sent

    @property
    def ents(self) -> list[ParseSpan]:
        """The named entities within it."""
        return [each for each in self.doc.ents if self.start <= each.start and each.end <= self.end]

    @property
    def noun_chunks(self) -> Iterator[ParseSpan]:
        """Base noun phrases, by spaCy's rules for English: a noun with what depends on it to its left."""
        before = -1
        for word in self._words:
            if word.pos_ not in _NOMINAL or word.left_edge.i <= before:
                continue
            head = word
            if word.dep_ == "conj":
                head = word.head
                while head.dep_ == "conj" and head.head.i < head.i:
                    head = head.head
            if head.dep_ in _CHUNKS:
                before = word.i
                yield ParseSpan(self.doc, word.left_edge.i, word.i + 1)


class ParseTree:
    """A parsed text: spaCy's ``Doc``. ``user_data``: what is derived from it, kept as long as it is."""

    def __init__(self, doc: Any) -> None:
        """Copy a spaCy doc, so that nothing of it is kept."""
        self.text: str = doc.text
        self.user_data: dict[Any, Any] = {}
        self.words = [ParseWord(self, token) for token in doc]
        for word, token in zip(self.words, doc, strict=True):
            word.head = self.words[token.head.i]
            word.left_edge, word.right_edge = self.words[token.left_edge.i], self.words[token.right_edge.i]
            word.children = tuple([self.words[child.i] for child in token.children])
            word.lefts = word.children[: token.n_lefts]
        self.ents: tuple[ParseSpan, ...] = tuple(ParseSpan(self, e.start, e.end, e.label_) for e in doc.ents)
        parsed = doc.has_annotation("SENT_START")
        self.sents = [ParseSpan(self, each.start, each.end) for each in doc.sents] if parsed else []
        for sentence in self.sents:
            for word in sentence:
                word.sent = sentence

    def __iter__(self) -> Iterator[ParseWord]:
        """Iterate over its words."""
        return iter(self.words)

    def __len__(self) -> int:
        """Return its number of words."""
        return len(self.words)

    @overload
    def __getitem__(self, place: int) -> ParseWord: ...

    @overload
    def __getitem__(self, place: slice) -> ParseSpan: ...

    def __getitem__(self, place: int | slice) -> ParseWord | ParseSpan:
        """Return the word at a place, or the span of a slice."""
        if isinstance(place, slice):
            start, end, _ = place.indices(len(self.words))
            return ParseSpan(self, start, max(start, end))
        return self.words[place]

    @property
    def noun_chunks(self) -> Iterator[ParseSpan]:
        """Base noun phrases of the whole text."""
        return self[:].noun_chunks

    def name(self, found: Iterable[ParseSpan]) -> None:
        """Set its named entities, spans without overlap in their order, in place of those it had."""
        for before in self.ents:
            for word in before:
                word.ent_type_ = ""
        self.ents = tuple(found)
        for entity in self.ents:
            for word in entity:
                word.ent_type_ = entity.label_

    def char_span(self, start: int, end: int, label: str = "") -> ParseSpan | None:
        """Return the words that characters from *start* to before *end* are part of; None where an end of it is outside the text.

        spaCy's alignment "expand": the space behind a word belongs to it at the end of a span, and not at its beginning.
        """
        first, last = self._at(start), self._at(end - 1)
        if first is None or last is None:
            return None
        in_space = start == self.words[first].idx + len(self.words[first])
        return ParseSpan(self, first + in_space, last + 1, label)

    def _at(self, char: int) -> int | None:
        """Return the number of the word that a character, or the space behind it, belongs to."""
        low, high = 0, len(self.words)
        while low < high:
            middle = (low + high) // 2
            word = self.words[middle]
            if char < word.idx:
                high = middle
            elif char >= word.idx + len(word.text_with_ws):
                low = middle + 1
            else:
                return middle
        return None


def _far_from_root(word: ParseWord) -> int:
    if (word.is_space or word.is_punct) and not word.children:
        return len(word.doc) - 1
    return sum(1 for _ in word.ancestors)


class TreeParser:
    """A spaCy pipeline whose parses are plain objects. Not safe for concurrent use, as the pipeline is not."""

    def __init__(self, nlp: Any) -> None:
        """Read with *nlp*, a loaded pipeline with a parser."""
        self.nlp = nlp

    def __call__(self, text: str) -> ParseTree:
        """Return the parse of a text."""
        return ParseTree(self.nlp(text))

    def pipe(self, texts: Iterable[str], *, batch_size: int) -> Iterator[ParseTree]:
        """Yield the parses of texts in order, read in batches of so many."""
        return map(ParseTree, self.nlp.pipe(texts, batch_size=batch_size))
