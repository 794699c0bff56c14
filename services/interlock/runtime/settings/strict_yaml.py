"""Strict YAML: duplicate keys and aliases, which parsers read differently, are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from interlock.domain.errors import invalid


class _Strict(yaml.SafeLoader):
    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("an alias")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:  # noqa: FBT001, FBT002 - PyYAML's signature
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for position, key in enumerate(keys):
            if key in keys[:position]:
                raise yaml.MarkedYAMLError(
                    problem=f"the key {key!r:.80} twice", problem_mark=node.value[position][0].start_mark
                )
        return super().construct_mapping(node, deep)


def parse_yaml(content: bytes, path: Path, *, secret: bool = True) -> Any:
    """Return the YAML document of a file. Refused with FILE_MALFORMED, naming line and column.

    The parser's message is included only if the file is not *secret*, because it quotes the content.
    """
    try:
        return yaml.load(content.decode(), Loader=_Strict)  # noqa: S506 - a subclass of the safe loader
    except (UnicodeDecodeError, RecursionError, TypeError) as error:
        raise invalid("FILE_MALFORMED", f"{path}: {type(error).__name__}") from None
    except yaml.YAMLError as error:
        mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None) or str(error)
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        told = "it cannot be read as YAML" if secret else problem
        raise invalid("FILE_MALFORMED", f"{path}{where}: {told}") from None
