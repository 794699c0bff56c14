"""Write helm/interlock/values.schema.json: closed, from values.yaml, helm/schema.yaml and the settings model, or check that it is fresh.

python scripts/gen_chart.py            write
python scripts/gen_chart.py --check    exit 1 when the committed schema differs
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

import yaml

from interlock.runtime.settings.model import Settings

ROOT = Path(__file__).resolve().parent.parent
CHART = ROOT / "helm" / "interlock"
VALUES, RULES, SCHEMA = CHART / "values.yaml", ROOT / "helm" / "schema.yaml", CHART / "values.schema.json"
NAMESPACE_RULES = {
    "type": "object", "additionalProperties": False,
    "properties": {
        "profile": {"enum": ["observe", "enforce", "regulated"]}, "opt_out": {"type": "boolean"},
        "env": {"type": "object", "additionalProperties": {"type": "string"}, "propertyNames": {"pattern": "^INTERLOCK_[A-Z0-9_]+$"}},
    },
}  # fmt: skip
QUANTITIES = {
    "type": "object", "additionalProperties": {"type": ["string", "number"], "pattern": "^[0-9]+([.][0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?$"},
}  # fmt: skip
RESOURCES = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"requests": QUANTITIES, "limits": QUANTITIES},
}
"""What the API server would find out with half of the release in place."""
COMMENT = re.compile(r"^(?P<indent> *)# -- (?P<text>.+)$")

Schema = dict[str, Any]


def comments(text: str) -> dict[str, str]:
    """Return the sentence above each value, by its path."""
    found: dict[str, str] = {}
    path: list[str] = []
    said: list[str] = []
    for line in text.splitlines():
        if match := COMMENT.match(line):
            said = [match["text"]]
        elif said and line.strip().startswith("# "):
            said.append(line.strip()[2:])
        elif key := re.match(r"^( *)([A-Za-z]\w*):", line):
            path = [*path[: len(key[1]) // 2], key[2]]
            if said:
                found[".".join(path)] = " ".join(said)
            said = []
    return found


def of_value(path: str, value: Any, rules: Schema, said: dict[str, str]) -> Schema:
    """Return the schema of a value, by its default and the rules."""
    schema: Schema = {"description": said[path]} if path in said else {}
    if path in rules["resources"]:
        return schema | RESOURCES
    if isinstance(value, dict):
        properties = {
            name: of_value(f"{path}.{name}" if path else name, one, rules, said) for name, one in value.items()
        }
        return schema | {"type": "object", "additionalProperties": False, "properties": properties}
    if isinstance(value, list):
        items = {"type": "string", **({"pattern": rules["patterns"][path]} if path in rules["patterns"] else {})}
        return schema | {"type": "array", "items": items, "uniqueItems": True}
    kinds: dict[type, str] = {bool: "boolean", int: "integer", str: "string"}
    schema["type"] = kinds[type(value)]
    for rule, keyword in (("enums", "enum"), ("patterns", "pattern"), ("least", "minimum")):
        if path in rules[rule]:
            schema[keyword] = rules[rule][path]
    return schema


def of_settings(left_out: list[str]) -> Schema:
    """Return the schema of the settings that an operator may give to the chart."""
    unknown = set(left_out) - set(Settings.model_fields)
    if unknown:
        raise SystemExit(f"helm/schema.yaml names what is no setting: {', '.join(sorted(unknown))}")
    model = Settings.model_json_schema()
    properties = {name: _plain(one) for name, one in model["properties"].items() if name not in left_out}
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _plain(field: Schema) -> Schema:
    """Return a field without what concerns Python: defaults, titles, and None, which is absence in a values file."""
    kept = {name: value for name, value in field.items() if name not in {"default", "title", "anyOf", "format"}}
    kinds = [one for one in field.get("anyOf", ()) if one.get("type") != "null"]
    for one in kinds[:1]:
        kept |= {name: value for name, value in one.items() if name not in {"format", "writeOnly", "title"}}
    kept["description"] = " ".join(str(kept.get("description", "")).split())
    return kept


def generated() -> str:
    """Return the schema."""
    text = VALUES.read_text(encoding="utf-8")
    rules: Schema = yaml.safe_load(RULES.read_text(encoding="utf-8"))
    schema = of_value("", yaml.safe_load(text), rules, comments(text))
    schema["properties"]["settings"] = of_settings(rules["chart_settings"])
    schema["properties"]["injector"]["properties"]["namespaces"] = {
        "type": "object",
        "additionalProperties": NAMESPACE_RULES,
    }
    schema["properties"]["global"] = {"type": "object"}
    head = {"$schema": "http://json-schema.org/draft-07/schema#", "title": "Values of the chart interlock"}
    return json.dumps(head | schema, indent=1, ensure_ascii=False) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    check = parser.parse_args().check
    fresh = generated()
    if SCHEMA.exists() and SCHEMA.read_text(encoding="utf-8") == fresh:
        return 0
    print(f"stale: {SCHEMA.relative_to(ROOT)}; run scripts/gen_chart.py")
    if not check:
        SCHEMA.write_text(fresh, encoding="utf-8")
    return 1 if check else 0


if __name__ == "__main__":
    sys.exit(main())
