"""Take the schemas of the custom resources that the recipes of deploy/ use from the CRDs of their projects.

python scripts/take_crds.py CRD_FILE...    write tests/data/crds/KIND.json for every kind that a recipe uses

The files are in the Go modules istio.io/api (kubernetes/customresourcedefinitions.gen.yaml) and github.com/envoyproxy/gateway
(charts/gateway-helm/crds/); both are Apache-2.0. Descriptions and rules in CEL are left out, and unknown fields are refused, which an API server
would only drop.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "tests" / "data" / "crds"
RECIPES = (ROOT / "deploy" / "istio" / "models.yaml", ROOT / "deploy" / "envoy-gateway" / "models.yaml")
_LEFT_OUT = ("description", "default")


def used() -> set[tuple[str, str]]:
    """Return apiVersion and kind of every object of the recipes."""
    return {
        (one["apiVersion"], one["kind"])
        for path in RECIPES
        for one in yaml.safe_load_all(path.read_text(encoding="utf-8"))
    }


def closed(schema: Any) -> Any:
    """Return a schema without its prose, and without room for unknown fields."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kept: dict[str, Any] = {}
    for name, value in schema.items():
        if name == "properties":
            kept[name] = {field: closed(one) for field, one in value.items()}
        elif not name.startswith("x-kubernetes-") and not (name in _LEFT_OUT and not isinstance(value, dict)):
            kept[name] = closed(value)
    free = schema.get("x-kubernetes-preserve-unknown-fields")
    if "properties" in kept and kept.get("type") == "object" and "additionalProperties" not in kept and not free:
        kept["additionalProperties"] = False
    if schema.get("x-kubernetes-int-or-string"):
        kept["type"] = ["integer", "string"]
    return kept


def take(path: Path, wanted: set[tuple[str, str]]) -> None:
    """Write the schemas of the *wanted* kinds that a file of CRDs has."""
    for crd in yaml.safe_load_all(path.read_text(encoding="utf-8")):
        if not crd or crd.get("kind") != "CustomResourceDefinition":
            continue
        kind, group = crd["spec"]["names"]["kind"], crd["spec"]["group"]
        for version in crd["spec"]["versions"]:
            if (f"{group}/{version['name']}", kind) in wanted:
                spec = closed(version["schema"]["openAPIV3Schema"]["properties"]["spec"])
                told = {"apiVersion": f"{group}/{version['name']}", "kind": kind, "spec": spec}
                name = f"{kind}.{group}.json"
                (TARGET / name).write_text(
                    json.dumps(told, separators=(",", ":"), sort_keys=True) + "\n", encoding="utf-8"
                )


def main() -> int:
    TARGET.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[1:]:
        take(Path(name), used())
    return 0


if __name__ == "__main__":
    sys.exit(main())
