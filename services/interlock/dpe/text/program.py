"""Lines of a code block: program text, comments for people, and what is neither (ATT-6).

Program text asserts nothing about the world. A fence alone proves nothing: prose, tables of values and JSON inside one
are read as before, and comments and long strings are read by themselves, so that a statement hides in none of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from interlock.dpe.text.patterns import pattern, spaced, span_of
from interlock.dpe.text.text import Text

_STATEMENT = spaced(
    r"""
    ^\s*(?:
      (?:async\s+)?def\s+\w+\s*\( | class\s+\w+\s*[:({] | (?:from\s+[\w.]+\s+)?import\s+[\w{*(.'"] | (?:el)?if\b.*[:{]\s*$ | else\s*[:{]?\s*$
    | (?:for|while|with|try|except|finally|switch|match|case|do)\b.*[:{]\s*$ | return\b | raise\s+\w | yield\b | pass\s*$ | break;?\s*$
    | continue;?\s*$ | assert\s | @\w | \#include\b | \#!/ | using\s+\w | package\s+\w | (?:pub\s+)?fn\s+\w+ | func\s+[\w(] | function\b
    | (?:export\s+)?(?:const|let|var|static|final|public|private|protected|struct|enum|interface|type)\s+\w | end\s*$ | echo\s
    | (?:SELECT|INSERT\s+INTO|UPDATE|DELETE\s+FROM|CREATE|ALTER|DROP|WHERE|FROM|(?:LEFT|INNER|OUTER)?\s*JOIN|GROUP\s+BY|ORDER\s+BY|LIMIT|VALUES)\b
    | (?:\$|>>>|\.\.\.|PS>)\s | (?:sudo|pip3?|npm|npx|yarn|apt(?:-get)?|brew|docker|kubectl|git|curl|wget|cd|ls|mkdir|rm|cp|mv|chmod|export|python3?|node|make|cargo|go)\s+[\w./-]
    | [{}()\[\];,]+\s*$
    )
    | [\w\])]\s*(?:=|:=|\+=|-=|==|!=|<=|>=|=>|->|<-|&&|\|\|)\s*[\w\[("'{$-] | \w\([^()]*\)\s*[;:{.)]*\s*$ | ;\s*$ | [{]\s*$ | </?\w+[^>]*>
    """,
)
_COMMENT = pattern(r"^\s*(?:#|//+|--\s|/\*+|\*\s|<!--|;;+|%\s)\s*(?P<text>.*?)\s*(?:\*/|-->)?\s*$")
_TRAILING = pattern(r"""[\w\s;,)\]}"']\s(?:#|//)\s+(?P<text>[^"'\n]{3,})$""")
_STRING = pattern(r"\"(?P<double>[^\"\n]{25,})\"|'(?P<single>[^'\n]{25,})'")
_PROSE = frozenset({"the", "a", "an", "was", "were", "are", "has", "had", "have", "of", "by", "to", "that", "will"})
_ASSERTS = pattern(r"\s*[A-Z][a-z'’]+(?:\s[\w'’.-]+){0,6}\s(?:is|was|were|are|has|had|will)\s")
_IN_WORDS = pattern(r"\s*[A-Z][\w'’]+(?: [\w'’.,%$€£-]+){3,}[;:{.,]*\s*\z")
_LITERAL = pattern(r"\"[^\"\n]*\"|'[^'\n]*'|`[^`\n]*`|\s(?:#|//).*$")
_WORD = pattern(r"\p{L}+")
_QUOTES = pattern(r"\"{3}|'{3}")


class LineKind(Enum):
    """The kind of a line, or a part of a line, of a code block."""

    PROGRAM = "program"
    COMMENT = "comment"
    OTHER = "other"


@dataclass
class ProgramReader:
    """Reads the lines of one code block in order; it knows whether a text in triple quotes is open."""

    quoted: bool = field(default=False)

    def parts(self, line: Text) -> Iterator[tuple[LineKind, Text]]:
        """Yield the parts of a line: what is program, and each comment or long string in it."""
        chars = line.chars
        quotes = [match.span() for match in _QUOTES.finditer(chars)]
        if self.quoted or quotes:
            inside = self.quoted
            self.quoted = inside if len(quotes) % 2 == 0 else not inside
            yield LineKind.COMMENT, line.without(quotes).cut(0, len(chars) - sum(end - start for start, end in quotes))
            return
        comment = None if chars.lstrip().startswith(("#include", "#!")) else _COMMENT.match(chars)
        if comment:
            yield LineKind.COMMENT, line.cut(*span_of(comment, "text"))
            return
        if _STATEMENT.search(chars) is None or _is_prose(chars):
            yield LineKind.OTHER, line
            return
        yield LineKind.PROGRAM, line
        for match in [*_STRING.finditer(chars), *_TRAILING.finditer(chars)]:
            name = next(name for name in match.groupdict() if match[name] is not None)
            if " " in match[name].strip():
                yield LineKind.COMMENT, line.cut(*span_of(match, name))


def _is_prose(chars: str) -> bool:
    """Whether a line asserts something in words, whatever signs of program text it has."""
    bare = _LITERAL.sub("", chars)
    words = _WORD.findall(bare)
    asserts = _ASSERTS.match(bare) is not None or _IN_WORDS.match(bare) is not None
    return asserts or (len(words) > 4 and sum(word in _PROSE for word in words) > 1)
