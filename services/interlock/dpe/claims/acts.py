"""Sentences that make no factual claim: what is said to the reader, and asserts nothing about the world (ATT-6).

Greetings, thanks, offers, questions, refusals, announcements, wishes and pointers to help are told by their structure: who
speaks to whom, by which verb, and what hangs on it. Their form excuses only themselves. A clause inside them that asserts
something of its own, a figure, or a name that is not merely addressed or asked about makes them a claim: "Did you know
that the CEO resigned?", "Thanks for asking, revenue was $9.9 million."
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from interlock.dpe.claims import offers
from interlock.dpe.claims.wording import BARE_VERBS, META_WORDS, SUBJECTS, is_content_word
from interlock.dpe.text.wordlists import word_set

_SPEAKERS = frozenset({"i", "you", "we", "us", "me", "anyone", "anybody"})
_EMPTY_SUBJECTS = _SPEAKERS | {
    "it",
    "this",
    "that",
    "these",
    "those",
    "there",
    "what",
    "which",
    "who",
    "anything",
    "everything",
}
_COURTESY = word_set(
    """
    absolutely accept advance afternoon alright always amazing anytime apologise argh aware awesome awful back bad bear beautiful
    best bit bother bravo bring care careful chance change chat cheer choice clear close come confident confuse
    confusion congrat congratulation consider cool correct correction curious dear definitely delighted difficult
    difficulty do doubt easily easy enjoy enough evening ever everyone everything exactly excellent excited exciting
    fantastic fault fee feedback fingers forget forward free friend frustrate frustrating frustration fun gladly go gotcha got
    great greeting guide hand handle hang happen happily hard haha hear hey hmm hold huge idea impressive inconvenience
    indeed interest interested interesting journey kind kindly later lie listen lot lovely luck lucky make matter mean mind
    minute misunderstand misunderstanding moment morning move naturally nice night no noted nothing now oh one oops open
    opinion patience perfect perfectly person pick plain play pleased possibly pretty problem progress proud put rather ready
    really reach regard remember reply rest right safe say shame sincerely soon sound speak start stay step still stop story stuff
    suggestion super support surely sweet take talk team thing think thought thrilled time together tomorrow tonight touch
    there at all through around walk understood
    lots decide tough fair confirm unsure other unclear meet break closer figure down of course sense whenever shortly gentle heart heartfelt proceed chosen
    tricky trip trouble true trust understandable unfortunately very wait warm week weekend welcome well while wise wonderful
    work worry worth wow wrong yeah yep yes yet yours yup
    """
)
_EVALUATIVE = word_set(
    """
    great good nice lovely wonderful excellent fantastic interesting question choice idea point news sound understandable shame
    okay ok fine cool tough difficult tricky situation amazing awesome thoughtful fun worry matter make sense right correct alright perfect really very so
    absolutely completely totally sorry unfortunate frustrate frustrating awful sad fair thing yes no oh well indeed of course
    """
)
"""What may be said of a thing or of what the reader said; "it is safe" is a claim."""

_INFORMATION = word_set(
    """
    access answer information info detail data knowledge record context ability source evidence mention indication
    permission capability document documentation reference specifics confirmation clarity memory update insight
    """
)
_SOURCES = word_set(
    """
    article context document documentation excerpt information material passage source text transcript
    """
)
_RECORDS = word_set("report page file paper manual email message note section chapter letter record minute")
_TELLING = word_set(
    """
    address answer contain cover describe disclose discuss explain give identify include indicate list mention name note
    offer provide reveal say show specify state tell define clarify refer
    """
)
_SAID = word_set("mention state specify say indicate disclose discuss clarify")
_NOTHING_KNOWN = word_set("information info detail data mention specifics detail")
_FINDING = word_set(
    """
    find locate see know verify confirm determine tell answer say access browse view retrieve open look identify provide
    give share offer help assist discuss comment predict guarantee recall remember speculate advise diagnose
    write create generate produce complete do comply continue engage support fulfil fulfill respond process read feel want understand mean
    """
)
_POINTING = word_set(
    """
    ask consult contact check see refer visit reach call seek speak talk feel let note remember keep try provide share
    specify clarify rephrase send paste upload tell give take stay enjoy hold wait look consider verify review read follow
    choose pick select speak continue go start make come double
    """
)
_HELP = word_set(
    """
    doctor physician pharmacist lawyer attorney advisor adviser accountant professional specialist expert provider clinician
    nurse therapist authority website site page documentation doc manual guide support team service helpdesk administrator admin
    manager colleague department office hotline line link email question detail information context file document text
    image screenshot example code error message log request preference choice option number part step requirement need goal
    time care sure qualified healthcare medical legal financial official relevant appropriate local customer additional
    specific up further exact correct full complete latest current own personal individual advice situation case everyone
    """
)
_WISHES = frozenset({"good luck", "best of", "have a", "have an", "have fun", "enjoy your", "enjoy the", "take care", "all the",
                     "congratulations on", "congrats on", "safe travels", "happy to", "glad to", "looking forward", "best wishes"})  # fmt: skip
_TO_A_PERSON = frozenset({"thank", "welcome", "meet", "see", "help", "talk", "speak"})
_ADVISING = frozenset({"recommend", "suggest", "advise", "encourage", "need", "want"})
_SELF = word_set("assistant bot chatbot ai model language agent helper virtual digital program")
_NEGATIONS = frozenset({"no", "none", "nothing", "unable", "without", "unsure", "unaware"})
_INDIRECT = frozenset({"if", "whether", "how", "what", "which", "who", "where", "when", "why", "whom", "whose"})
_REASONS = frozenset({"why", "how", "when", "since"})
_ADVERSE = frozenset({"but", "however", "though", "although", "yet", "because", "since", "as"})


@dataclass(frozen=True)
class Wording:
    """The tokens of a clause, the names in it, and whether it has a figure or a date."""

    tokens: Sequence[Any]
    names: Sequence[Any]
    valued: bool

    @property
    def words(self) -> list[Any]:
        """The tokens without punctuation."""
        return [token for token in self.tokens if not token.is_punct and not token.is_space]

    @property
    def verbs(self) -> list[Any]:
        """The verbs that are not mere modifiers."""
        return [t for t in self.tokens if t.pos_ in {"VERB", "AUX"} and t.dep_ not in {"amod", "acl", "aux", "auxpass"}]

    @property
    def subjects(self) -> list[Any]:
        """The subjects of all clauses."""
        return [token for token in self.tokens if token.dep_ in SUBJECTS]


def makes_no_claim(tokens: Sequence[Any], names: Sequence[Any], *, valued: bool) -> bool:
    """Whether the tokens of a clause or sentence make no factual claim.

    *names* are its named entities; *valued* tells that it states a figure, a date or an address.
    """
    said = Wording(tokens, names, valued)
    if not said.words:
        return False
    if said.tokens[-1].text == "?" or any(token.text == "?" for token in said.tokens[-2:]):
        return _asks(said)
    if valued:
        return _declines(said) and _figures_are_topics(said)
    speaks = _is_courtesy(said) or _declines(said) or _introduces_itself(said)
    if speaks or (not names and offers.offers_or_refuses(tokens)):
        return True
    if said.words[0].lower_ in {"have", "enjoy", "safe"} and not said.subjects and len(said.words) <= 6:
        return _wishes(said)
    return not names and (_announces(said) or _points_to_help(said) or _is_for_another(said) or _wishes(said))


def answers_by_reference(sentence: Any) -> bool:
    """Whether a sentence takes back what it declined to say: "I can't say whether it is so, but it is."."""
    tokens = [token for token in sentence if not token.is_punct and not token.is_space]
    for number, token in enumerate(tokens):
        if token.lower_ in _ADVERSE and token.dep_ in {"cc", "mark", "advmod", "prep"} and number:
            rest = tokens[number + 1 :]
            verbs = [t for t in rest if t.pos_ in {"VERB", "AUX"}]
            bare = all(t.lower_ in _EMPTY_SUBJECTS | {"he", "she", "they"} for t in rest if t.dep_ in SUBJECTS)
            if verbs and bare and all(t.pos_ in {"AUX", "PRON", "PART", "ADV", "DET"} for t in rest):
                return any(t.dep_ in SUBJECTS and t.lower_ not in _SPEAKERS for t in rest)
    return False


def _is_courtesy(said: Wording) -> bool:
    """Whether only words of courtesy are said, by or to the reader. A person may be addressed by name."""
    if any(t.lower_ not in _EMPTY_SUBJECTS for t in said.subjects if not _in_names(t, said.names)):
        return False
    if said.names and (said.verbs and not any(v.lemma_.lower() in _TO_A_PERSON for v in said.verbs)):
        return False
    if any(name.label_ != "PERSON" and len(name) > 1 for name in said.names):
        return False
    rest = [t for t in said.words if is_content_word(t) and not _in_names(t, said.names)]
    of_a_thing = [t for t in said.subjects if t.lower_ not in _SPEAKERS and not _in_names(t, said.names)]
    known = _EVALUATIVE | BARE_VERBS if of_a_thing else META_WORDS | BARE_VERBS | _COURTESY
    return bool(rest) and all(t.lemma_.lower() in known or t.lower_ in known for t in rest)


def _in_names(token: Any, names: Sequence[Any]) -> bool:
    return any(name.start <= token.i < name.end for name in names)


def _asks(said: Wording) -> bool:
    """Whether a question only asks. One that tells, by a that-clause, a denial or a presupposition, does not."""
    words, verbs = said.words, said.verbs
    root = next((t for t in said.tokens if t.dep_ == "ROOT"), words[0])
    own = [t for t in root.children if t.dep_ in SUBJECTS]
    wh = next((t for t in words[:5] if t.tag_ in {"WDT", "WP", "WP$", "WRB"}), None)
    fragment = not said.subjects
    if own and not fragment:
        before = [t for t in (root, *root.children) if t.pos_ in {"AUX", "VERB"} and t.i < own[0].i]
        asked = wh is not None and wh.i <= own[0].right_edge.i
        if not before and not asked:
            return False  # the order of a statement: "The dose is 40 mg, right?"
    denied = any(t.dep_ == "neg" and t.head in (root, *root.children) for t in words)
    if denied and wh is None and not all(t.lower_ in _SPEAKERS for t in said.subjects):
        return False  # "Isn't it 40 mg?" tells
    if _tells_inside(said):
        return False
    if fragment:
        known = META_WORDS | BARE_VERBS | _COURTESY | _HELP | _INFORMATION
        short = len(words) <= 3 or all(t.lemma_.lower() in known for t in words if is_content_word(t))
        return short and not said.valued and not said.names
    to_reader = all(t.lower_ in _SPEAKERS or t.tag_ in {"WP", "WDT"} for t in said.subjects)
    if said.valued or said.names:
        return to_reader and (wh is None or wh.lower_ not in _REASONS)
    past = any(t.tag_ in {"VBD", "VBN"} or t.lower_ in {"did", "was", "were", "had"} for t in (*verbs, *root.children))
    return to_reader or wh is None or not (wh.lower_ in _REASONS and past)


def _tells_inside(said: Wording) -> bool:
    """Whether a clause inside asserts something: a that-clause under know or tell, a relative clause, an afterthought."""
    for verb in said.tokens:
        if verb.pos_ not in {"VERB", "AUX"} or verb.dep_ in {"ROOT", "aux", "auxpass", "xcomp"}:
            continue
        own = [c for c in verb.children if c.dep_ in SUBJECTS]
        if not own:
            continue
        if _is_plain(verb, said):
            continue
        marks = _marks(verb)
        if verb.dep_ in {"ccomp", "pcomp", "csubj", "advcl"} and marks & _INDIRECT and verb.head.lemma_.lower() != "be":
            if marks & _REASONS and any(t.tag_ == "VBD" for t in verb.subtree) and (said.valued or said.names):
                return True
            if verb.dep_ != "advcl" or "if" in marks:
                continue
        return True
    return False


def _marks(verb: Any) -> set[str]:
    """Return the words that introduce a clause, in lower case."""
    marks = {c.lower_ for c in verb.children if c.dep_ in {"mark", "advmod", "attr", "dobj", "det", "pobj"}}
    return marks | {t.lower_ for t in verb.subtree if t.tag_ in {"WDT", "WP", "WRB", "WP$"} and t.i < verb.i}


def _is_indirect(verb: Any) -> bool:
    """Whether a verb heads an indirect question: "which version you prefer"."""
    return verb.pos_ in {"VERB", "AUX"} and verb.dep_ in {"ccomp", "pcomp"} and bool(_marks(verb) & _INDIRECT)


def _is_plain(verb: Any, said: Wording) -> bool:
    """Whether a clause inside is itself only a courtesy: "if you have any questions", "what you would like to know"."""
    inside = [t for t in verb.subtree if is_content_word(t)]
    known = META_WORDS | BARE_VERBS | _COURTESY | _HELP | _INFORMATION
    own = [c for c in verb.children if c.dep_ in SUBJECTS]
    if not all(c.lower_ in _EMPTY_SUBJECTS for c in own) or any(_in_names(t, said.names) or t.like_num for t in inside):
        return False
    return all(t.lemma_.lower() in known or t.lower_ in known for t in inside)


def _declines(said: Wording) -> bool:
    """Whether a clause says that something is not known, not told or not done by the speaker."""
    no = any(t.dep_ == "neg" or t.lower_ in _NEGATIONS for t in said.tokens)
    if not no or _tells_inside(said):
        return False
    speakers = [t.lower_ for t in said.subjects if t.lower_ in _SPEAKERS]
    if speakers and all(t.lower_ in _SPEAKERS | {"it", "that", "this"} for t in said.subjects):
        return _speaker_declines(said, by_me="i" in speakers and "we" not in speakers)
    return _source_is_silent(said)


def _speaker_declines(said: Wording, *, by_me: bool) -> bool:
    """Whether the speaker has no information or cannot find, tell or help; "we have no record of it" is a claim."""
    asked = {t.i for verb in said.tokens if _is_indirect(verb) for t in verb.subtree}
    lemmas = {t.lemma_.lower() for t in said.verbs if t.i not in asked} - BARE_VERBS
    lacking = _INFORMATION | {"sure", "certain", "able", "unable", "aware"} if by_me else _NOTHING_KNOWN
    return (by_me and lemmas <= _FINDING | _TELLING) or any(t.lemma_.lower() in lacking for t in said.words)


def _source_is_silent(said: Wording) -> bool:
    """Whether no source tells something: the context does not say it, it is not mentioned, there is no information."""
    main = {
        t.lemma_.lower() for t in said.verbs if t.dep_ == "ROOT" or (t.dep_ == "conj" and t.head.dep_ == "ROOT")
    } - BARE_VERBS
    there = any(t.lower_ == "there" for t in said.subjects)
    if there and any(t.lower_ in {"nothing", "none"} for t in said.words):
        return any(t.lemma_.lower() in _SOURCES | _RECORDS | {"policy"} for t in said.tokens if t.dep_ == "pobj")
    nouns = {t.lemma_.lower() for t in said.subjects} | {
        t.lemma_.lower()
        for t in said.tokens
        if t.dep_ in {"attr", "dobj"} and any(c.lower_ == "no" for c in t.children)
    }
    if nouns & _NOTHING_KNOWN:
        told = bool({t.lemma_.lower() for t in said.verbs} & _TELLING)
        return there or told or any(t.lower_ in {"available", "known"} for t in said.words)
    if nouns & _SOURCES or (nouns & {"none", "nothing"} and any(t.lemma_.lower() in _SOURCES for t in said.words)):
        return bool(main) and main <= _TELLING
    passive = any(t.dep_ == "nsubjpass" for t in said.subjects)
    empty = all(t.lower_ in _EMPTY_SUBJECTS for t in said.subjects)
    named = passive and bool(said.names) and not empty
    return bool(nouns & _RECORDS or passive) and bool(main) and main <= _SAID and not named


def _figures_are_topics(said: Wording) -> bool:
    """Whether every figure stands in what a refusal is about: "I have no information about the 2024 report"."""
    topics = {
        t.i for token in said.tokens if token.lower_ in {"about", "on", "regarding", "for", "concerning", "whether"}
        for t in (token.head.subtree if token.lower_ == "whether" else token.subtree)
    }  # fmt: skip
    return all(t.i in topics for t in said.tokens if t.like_num or t.pos_ == "NUM" or t.like_url)


def _announces(said: Wording) -> bool:
    """Whether a clause only announces what follows or says what the speaker will do."""
    first = [t.lower_ for t in said.words[:4]]
    opens = bool({"here", "below"} & set(first[:3])) or first[:2] in (["the", "following"], ["as", "follows"])
    ends = said.tokens[-1].text == ":" or len(said.words) <= 12
    if opens and ends and not _tells_inside(said):
        return all(t.lemma_.lower() in BARE_VERBS | _TELLING | _COURTESY | META_WORDS | {"be"} for t in said.verbs)
    let = said.words[0].lower_ in {"let", "let's"} and all(t.lower_ in _EMPTY_SUBJECTS | {"'s"} for t in said.subjects)
    doing = _TELLING | _FINDING | META_WORDS | _COURTESY | BARE_VERBS | {"walk", "dive"}
    return let and all(t.lemma_.lower() in doing for t in said.verbs) and said.tokens[-1].text != ":"


def _points_to_help(said: Wording) -> bool:
    """Whether an instruction only points the reader to more help, or asks for more: no content of its own."""
    roots = [t for t in said.tokens if t.dep_ == "ROOT"]
    if not roots or _tells_inside(said):
        return False
    root = roots[0]
    imperative = root.tag_ in {"VB", "VBP"} and not any(c.dep_ in SUBJECTS for c in root.children)
    to_you = any(t.lower_ == "you" for t in said.subjects) and root.lemma_.lower() in _POINTING
    advised = to_you or (any(t.lower_ == "i" for t in said.subjects) and root.lemma_.lower() in _ADVISING)
    if not (imperative and root.lemma_.lower() in _POINTING) and not advised:
        return False
    known = META_WORDS | BARE_VERBS | _COURTESY | _HELP | _POINTING | _ADVISING
    topics = {t.i for v in said.tokens if _is_indirect(v) and not _marks(v) & _REASONS for t in v.subtree}
    rest = [t for t in said.words if t.i not in topics and is_content_word(t)]
    return all(t.lemma_.lower() in known or t.lower_ in known for t in rest)


def _is_for_another(said: Wording) -> bool:
    """Whether a question is only handed on: *that's one for a tax adviser*, *this is something for your doctor*."""
    row = [t.lower_ for t in said.words]
    if row[:1] not in (["that"], ["this"]) or row[1:2] not in (["'s"], ["’s"], ["is"]) or "for" not in row[2:6]:
        return False
    place = row.index("for")
    rest = [t for t in said.words[place + 1 :] if is_content_word(t) and t.dep_ not in {"compound", "amod"}]
    asked = set(row[2:place]) <= {"one", "something", "a", "question", "matter", "best", "more"}
    return asked and bool(rest) and all(t.lemma_.lower() in _HELP for t in rest)


def _wishes(said: Wording) -> bool:
    """Whether a clause only wishes something, congratulates, or says how the speaker feels about what the reader said."""
    words = offers.after_courtesies(said.words, META_WORDS | _COURTESY)
    first = " ".join(t.lower_ for t in words[:2])
    if first in _WISHES:
        return (
            len(words) <= 14
            and not _tells_inside(said)
            and len([t for t in said.subjects if t.lower_ not in _SPEAKERS]) == 0
        )
    feels = any(t.lower_ == "i" for t in said.subjects) and any(
        t.lemma_.lower()
        in {"hope", "wish", "sorry", "glad", "happy", "delighted", "appreciate", "understand", "apologize", "apologise"}
        for t in said.words[:4]
    )
    if not feels:
        return False
    others = [t for t in said.subjects if t.lower_ not in _EMPTY_SUBJECTS and not _of_reader(t)]
    return not others and len(said.words) <= 16 and all(t.head.lemma_.lower() != "know" for t in said.subjects)


def _of_reader(noun: Any) -> bool:
    return any(child.lower_ in {"your", "my", "our"} for child in noun.subtree)


def _introduces_itself(said: Wording) -> bool:
    """Whether the speaker only says what it is: "I'm Aria, your virtual assistant."."""
    if not said.subjects or any(t.lower_ not in {"i", "name"} for t in said.subjects) or _tells_inside(said):
        return False
    known = META_WORDS | BARE_VERBS | _COURTESY | _SELF | {"name"}
    rest = [t for t in said.words if is_content_word(t) and not _in_names(t, said.names)]
    itself = any(t.lemma_.lower() in _SELF | {"name"} for t in rest)
    return itself and len(said.names) <= 1 and all(t.lemma_.lower() in known for t in rest)
