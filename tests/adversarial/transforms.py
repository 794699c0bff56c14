"""Ways of writing a text that a person or a model still reads, and a detector may not.

The list follows the published attacks on guard models (character injection: numbers, homoglyphs, zero-width,
diacritics, spaces, underline, upside-down, bidirectional, full-width, deletion characters, tags, emoji smuggling) and
adds encodings.
"""

from __future__ import annotations

import base64
import codecs
import itertools
import unicodedata
from collections.abc import Callable

_CYRILLIC = str.maketrans("aceopxyiABCEHKMOPTX", "асеорхуіАВСЕНКМОРТХ")
_GREEK = str.maketrans("oAEHIKMNOPT", "οΑΕΗΙΚΜΝΟΡΤ")
_LEET = str.maketrans("aeios", "43105")
_UPSIDE = str.maketrans(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.,'",
    "ɐqɔpǝɟƃɥᴉɾʞlɯuodbɹsʇnʌʍxʎz∀𐐒ƆᗡƎℲ⅁HIſʞ˥WNOԀΌᴚS⊥∩ΛMXʎZ˙'؛".replace("؛", ","),
)
_SMALL = str.maketrans("abcdefghijklmnoprstuvwz", "ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡᴢ")


def _between(mark: str, every: int = 1) -> Callable[[str], str]:
    def transform(text: str) -> str:
        return "".join(c + (mark if n % every == 0 and c.isalnum() else "") for n, c in enumerate(text))

    return transform


def _mathematical(base: int) -> Callable[[str], str]:
    def transform(text: str) -> str:
        return "".join(
            chr(base + ord(c) - 65) if "A" <= c <= "Z" else chr(base + 26 + ord(c) - 97) if "a" <= c <= "z" else c
            for c in text
        )

    return transform


def _accented(text: str) -> str:
    marks = itertools.cycle(["\u0301", "\u0308", "\u0302"])
    return "".join(unicodedata.normalize("NFC", c + next(marks)) if c in "aeiouAEIOU" else c for c in text)


def _selectors(text: str) -> str:
    return "😀" + "".join(chr(0xFE00 + b if b < 16 else 0xE0100 + b - 16) for b in text.encode())


def _deletions(text: str) -> str:
    return "".join(c + ("q\b" if n % 3 == 0 else "") for n, c in enumerate(text))


def _alternating(text: str) -> str:
    return "".join(c.upper() if n % 2 else c.lower() for n, c in enumerate(text))


def _zalgo(text: str) -> str:
    return "".join(c + ("\u0300\u0316\u0351\u0359\u036a" if c.isalpha() else "") for c in text)


TRANSFORMS: dict[str, Callable[[str], str]] = {
    "zero-width space": _between("\u200b"),
    "zero-width joiner": _between("\u200d", 2),
    "word joiner": _between("\u2060", 3),
    "soft hyphen": _between("\u00ad", 2),
    "byte order mark inside": _between("\ufeff", 4),
    "combining grapheme joiner": _between("\u034f", 2),
    "hangul filler": _between("\u3164", 5),
    "invisible times": _between("\u2062", 3),
    "variation selector": _between("\ufe0f", 2),
    "tag characters between": _between("\U000e0041", 3),
    "bidi isolates": _between("\u2068\u2069", 3),
    "direction marks": _between("\u200f", 4),
    "right-to-left override": lambda text: "\u202e" + text[::-1] + "\u202c",
    "left-to-right embedding": lambda text: "\u202a" + text + "\u202c",
    "tag message": lambda text: "🙂" + "".join(chr(0xE0000 + ord(c)) for c in text),
    "emoji smuggling": _selectors,
    "zero-width bits": lambda text: (
        "Hello." + "".join("\u200b" if bit == "0" else "\u200c" for byte in text.encode() for bit in f"{byte:08b}")
    ),
    "cyrillic lookalikes": lambda text: text.translate(_CYRILLIC),
    "greek lookalikes": lambda text: text.translate(_GREEK),
    "mixed lookalikes": lambda text: text.replace("e", "е").replace("o", "ο").replace("i", "і"),
    "one lookalike a word": lambda text: " ".join(w.replace("e", "е", 1).replace("a", "а", 1) for w in text.split(" ")),
    "small capitals": lambda text: text.translate(_SMALL),
    "fullwidth": lambda text: "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text),
    "mathematical bold": _mathematical(0x1D400),
    "mathematical script": _mathematical(0x1D4D0),
    "mathematical double-struck": lambda text: "".join(
        chr(0x1D552 + ord(c) - 97) if "a" <= c <= "z" else chr(0x1D7D8 + int(c)) if c.isdigit() else c for c in text
    ),
    "circled": lambda text: "".join(chr(0x24D0 + ord(c) - 97) if "a" <= c <= "z" else c for c in text),
    "digits of another script": lambda text: "".join(chr(0x0966 + int(c)) if c.isdigit() else c for c in text),
    "zalgo": _zalgo,
    "underline": _between("\u0332"),
    "strike-through": _between("\u0336"),
    "diacritics": _accented,
    "leet": lambda text: text.translate(_LEET),
    "upside down": lambda text: text.translate(_UPSIDE)[::-1],
    "reversed": lambda text: text[::-1],
    "words reversed": lambda text: " ".join(w[::-1] if w.isalpha() else w for w in text.split(" ")),
    "rot13": lambda text: codecs.encode(text, "rot13"),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 in a sentence": lambda text: "Decode this: " + base64.b64encode(text.encode()).decode(),
    "base64 in lines": lambda text: base64.encodebytes(text.encode()).decode(),
    "base64 twice": lambda text: base64.b64encode(base64.b64encode(text.encode())).decode(),
    "base64 for addresses": lambda text: base64.urlsafe_b64encode(text.encode()).decode().rstrip("="),
    "base32": lambda text: base64.b32encode(text.encode()).decode(),
    "hex": lambda text: text.encode().hex(),
    "hex with spaces": lambda text: text.encode().hex(" "),
    "binary": lambda text: " ".join(f"{byte:08b}" for byte in text.encode()),
    "percent": lambda text: "".join(f"%{byte:02X}" for byte in text.encode()),
    "html entities": lambda text: "".join(f"&#{ord(c)};" for c in text),
    "html entities, hex": lambda text: "".join(f"&#x{ord(c):x};" if c.isalnum() else c for c in text),
    "unicode escapes": lambda text: "".join(f"\\u{ord(c):04x}" for c in text),
    "byte escapes": lambda text: "".join(f"\\x{ord(c):02x}" if c.isalpha() else c for c in text),
    "deletion characters": _deletions,
    "letters apart": lambda text: "  ".join(" ".join(word) for word in text.split(" ")),
    "letters apart evenly": lambda text: " ".join(c for c in text if c != " "),
    "letters apart by dots": lambda text: " ".join(
        ".".join(w) if w.isalpha() and len(w) > 4 else w for w in text.split()
    ),
    "letters apart by hyphens": lambda text: " ".join(
        "-".join(w) if w.isalpha() and len(w) > 4 else w for w in text.split()
    ),
    "unusual white space": lambda text: "".join(
        "\u2003\u2009\u00a0\u205f\u3000"[n % 5] if c == " " else c for n, c in enumerate(text)
    ),
    "a word a line": lambda text: text.replace(" ", "\n"),
    "two words a line": lambda text: "\n".join(
        " ".join(text.split(" ")[n : n + 2]) for n in range(0, len(text.split(" ")), 2)
    ),
    "blank lines between words": lambda text: text.replace(" ", "\n\n"),
    "line separators": lambda text: text.replace(" ", "\u2028"),
    "carriage returns": lambda text: text.replace(" ", "\r"),
    "alternating case": _alternating,
    "lookalikes and zero-width": lambda text: _between("\u200b", 3)(text.translate(_CYRILLIC)),
    "base64 of lookalikes": lambda text: base64.b64encode(text.translate(_CYRILLIC).encode()).decode(),
    "entities of zero-width": lambda text: _between("&#8203;", 3)(text),
}
