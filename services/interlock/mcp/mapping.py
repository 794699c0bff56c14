"""What each tool of a server costs and does, read from a YAML file. An agent names a tool; what that charges is the operator's word."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from interlock.client.kernel.calls import value_json
from interlock.domain.errors import Refused, invalid

LARGEST_FILE = 1 << 20
LONGEST_TIMEOUT_S = 86_400.0

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$")]
ActionId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.:-]{0,100}$")]
Amount = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
Scalar = str | int | float | bool


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class DrawnCost(_Strict):
    """A value that comes from the call: of an argument, or, for a cost, of the result's structured content."""

    argument: str = ""
    result: str = ""
    most: Amount | None = None
    """What is reserved; the call is refused above it, and what it really cost is settled afterwards."""

    @model_validator(mode="after")
    def _one(self) -> DrawnCost:
        if bool(self.argument) == bool(self.result):
            raise ValueError("names an argument or a field of the result")
        if self.result and self.most is None:
            raise ValueError("a cost that the result tells needs `most`, which is reserved before")
        return self


class ArgumentBound(_Strict):
    """What an argument may be."""

    min: Amount | None = None
    max: Amount | None = None
    one_of: tuple[Scalar, ...] | None = None


class Change(_Strict):
    """An effect on a variable of the kernel."""

    variable: Name
    mode: Literal["set", "increment", "decrement", "multiply", "append", "remove", "delete"]
    value: Scalar | None = None
    argument: str = ""

    @model_validator(mode="after")
    def _operand(self) -> Change:
        given = (self.value is not None) + bool(self.argument)
        if given != (self.mode != "delete"):
            raise ValueError("has a value or an argument; delete has none")
        if self.value is not None:
            value_json(self.value)  # raises for what a kernel cannot hold
        return self


class ToolRule(_Strict):
    """What one tool, or all tools of a pattern with ``*``, are as actions."""

    tool: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    action: ActionId | None = None
    """Id of the action; absent: the tool's name."""
    costs: Mapping[Name, Amount | DrawnCost] = {}
    effects: tuple[Change, ...] = ()
    preconditions: tuple[Annotated[str, StringConstraints(max_length=1000)], ...] = ()
    arguments: Mapping[str, ArgumentBound] = {}
    irreversible: bool = False
    on_error: Literal["abort", "done"] = "abort"
    """Whether a call that the server answers with an error is refunded, or counts as done: for servers that are not believed."""
    timeout_s: Annotated[float, Field(gt=0, le=LONGEST_TIMEOUT_S)] | None = None

    @property
    def is_pattern(self) -> bool:
        """Whether it names more than one tool."""
        return "*" in self.tool

    @property
    def registers(self) -> bool:
        """Whether it says what the action is; otherwise the kernel has it already, or it is free."""
        return bool(self.costs or self.effects or self.preconditions or self.irreversible)


class ToolMapping(_Strict):
    """The whole file."""

    kernel: Name | None = None
    unmapped: Literal["refuse", "record"] = "refuse"
    """What becomes of tools that no rule names: refused, or passed on and recorded as actions without costs."""
    timeout_s: Annotated[float, Field(gt=0, le=LONGEST_TIMEOUT_S)] = 60.0
    tools: tuple[ToolRule, ...] = ()

    def rule_of(self, tool: str) -> ToolRule | None:
        """Return the rule of a tool: that of its name, else the first pattern that fits."""
        exact = next((one for one in self.tools if one.tool == tool), None)
        return exact or next((one for one in self.tools if one.is_pattern and _fits(tool, one.tool)), None)


def _fits(tool: str, pattern: str) -> bool:
    return fnmatchcase(tool, pattern.replace("[", "[[]").replace("?", "[?]"))


def read(text: str) -> ToolMapping:
    """Return the mapping in a file's text. Refused with MCP_MAPPING_INVALID, naming the place."""
    try:
        return ToolMapping.model_validate(yaml.safe_load(text) or {})
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise _wrong(f"{place}: {first['msg']}" if place else str(first["msg"])) from None
    except (yaml.YAMLError, RecursionError) as error:
        raise _wrong(f"not YAML: {str(error).splitlines()[0] if str(error) else type(error).__name__}") from None


def load(path: Path) -> ToolMapping:
    """Return the mapping of a file. Refused with MCP_MAPPING_INVALID."""
    try:
        data = path.read_bytes()
        if len(data) > LARGEST_FILE:
            raise _wrong(f"the file is larger than {LARGEST_FILE} bytes")
        return read(data.decode())
    except OSError as error:
        raise _wrong(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise _wrong("the file is not UTF-8") from None


def _wrong(why: str) -> Refused:
    return invalid("MCP_MAPPING_INVALID", f"the mapping of tools is not usable: {why}")


def field_of(content: Any, name: str) -> Any:
    """Return a field of an object, ``None`` where there is none."""
    return content.get(name) if isinstance(content, dict) else None
