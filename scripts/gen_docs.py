"""Write docs/configuration.md from the settings model, docs/events.md from the event table, docs/reasons.md and docs/metrics.md from
the source.

python scripts/gen_docs.py            write
python scripts/gen_docs.py --check    exit 1 when a committed page differs
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import metric_finder
from pydantic import SecretStr
from pydantic_core import PydanticUndefined
from reason_finder import find

from interlock.cli import serve
from interlock.domain.chain.audit_events import events_page
from interlock.domain.errors import Kind, Refused
from interlock.runtime.rpc import server
from interlock.runtime.rpc.errors import HTTP_CODES, grpc_code
from interlock.runtime.settings.groups import settings_groups
from interlock.runtime.settings.model import Settings

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "services" / "interlock"

CONFIGURATION = """# Configuration

`scripts/gen_docs.py` generates this page from the settings model. Do not edit it.

Each setting is an environment variable (`INTERLOCK_` and its name in capitals) or a key in a YAML file. The file is named by
`interlock --config FILE` or by `INTERLOCK_CONFIG_FILE`. A flag such as `serve --profile` overrides a variable, a variable overrides
the file, the file overrides the profile ([profiles.md](profiles.md)), and the profile overrides the default. The defaults below are
those of a setting that nothing else sets. `interlock config show` prints every value in force and where it came from. No setting is
required to start, except by the profile `regulated`. With a value out of range, or an unknown key, a process refuses to start with
`SETTINGS_INVALID`. For an unknown variable, `interlock serve` and `interlock check` print a warning.
"""

TABLE = """
## {title}

| setting | default | values | meaning |
| --- | --- | --- | --- |
"""

LIMITS = """
## Fixed limits of the gRPC servers

| limit | value |
| --- | --- |
| metadata of a call | {MAX_METADATA_BYTES} bytes; beyond that RESOURCE_EXHAUSTED |
| message to the sidecar | `max_body_bytes` plus {FRONT_MARGIN_BYTES} bytes for facts, headers and framing |
| message between services | four times `max_body_bytes`, because a report quotes facts and claims |
| streams per connection | {MAX_CONCURRENT_STREAMS}; further streams wait |
| default deadline of a call | `request_timeout_s` |
| keep-alive | the server pings after 30 s and gives up 10 s later; clients may ping every 5 s |
"""

REASONS = """# Reasons

`scripts/gen_docs.py` generates this page from the source. Do not edit it. [errors.md](errors.md) explains what each status means
and what to do about it. A reason is part of the API: it is in `error.code` or the 451 body over HTTP and in
`google.rpc.ErrorInfo` over gRPC, and it does not change. The text is for people and may change. `<name>` stands for a value that
is filled in at run time.

| reason | HTTP | gRPC | text | hint | raised in |
| --- | --- | --- | --- | --- | --- |
"""

METRICS = """# Metrics

`scripts/gen_docs.py` generates this page from the source. Do not edit it.

Every process serves its metrics at `/metrics` ([metrics_access](configuration.md)), as Prometheus text or, with exemplars that name a
trace, as OpenMetrics where the scraper accepts it. No label is an id or a text: routes are patterns, reasons are those of
[reasons.md](reasons.md), and names that a caller chooses (models, agent types) are bounded and then `other`. Histograms end in
`_bucket`, `_sum` and `_count`. The `gen_ai_` names are OpenTelemetry's semantic conventions 1.44 for generative AI, which still
change; `gen_ai_conventions` switches them off.

| metric | kind | labels | meaning | of |
| --- | --- | --- | --- | --- |
"""

ANY_KIND = "as the provider's"


def configuration() -> str:
    """Return the page of settings."""
    tables = [TABLE.format(title=title) + "".join(map(_row, names)) for title, names in settings_groups().items()]
    limits = LIMITS.format(**{name: value for part in (server, serve) for name, value in vars(part).items()})
    return CONFIGURATION + "".join(tables) + limits


def _row(name: str) -> str:
    field = Settings.model_fields[name]
    return f"| `{name}` | {_default(field)} | {_values(field)} | {_cell(field.description or '')} |\n"


def _default(field: Any) -> str:
    value = field.default
    return "none" if value is None or value is PydanticUndefined or value == "" else f"`{value}`"


def _values(field: Any) -> str:
    bounds = {
        name: f"{value:g}"
        for constraint in field.metadata
        for name in ("ge", "gt", "le")
        if (value := getattr(constraint, name, None)) is not None
    }
    kinds = [kind for kind in get_args(field.annotation) or (field.annotation,) if kind is not type(None)]
    inner = kinds[0] if get_origin(kinds[0]) is Literal else field.annotation  # a Literal may be inside an optional one
    if get_origin(inner) is Literal:
        kinds = list(get_args(inner))
        return ", ".join(f"`{value}`" for value in kinds)
    if not bounds:
        return {SecretStr: "secret text", Path: "path", str: "text", bool: "true or false"}[kinds[0]]
    least = f"above {bounds['gt']}" if "gt" in bounds else bounds["ge"]
    return f"{least} to {bounds['le']}" if "le" in bounds else f"{least} and more"


def reasons() -> str:
    """Return the page of reasons."""
    rows = []
    for reason, found in find(PACKAGE).items():
        kinds = sorted(Kind[kind] for kind in found.kinds)
        http = ", ".join(dict.fromkeys(str(HTTP_CODES[kind]) for kind in kinds)) or ANY_KIND
        grpc = ", ".join(dict.fromkeys(grpc_code(Refused(kind, reason, "")).name for kind in kinds)) or ANY_KIND
        cells = [http, grpc, "; ".join(found.texts), "; ".join(found.hints), ", ".join(sorted(found.places))]
        rows.append(f"| `{reason}` | {' | '.join(map(_cell, cells))} |\n")
    return REASONS + "".join(rows)


def metrics() -> str:
    """Return the page of metrics."""
    rows = [
        f"| `{one.name}` | {one.kind} | {', '.join(f'`{label}`' for label in one.labels)} | {_cell(one.meaning)} | {one.room} |\n"
        for one in metric_finder.find(PACKAGE)
    ]
    return METRICS + "".join(rows)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


PAGES = {"configuration.md": configuration, "events.md": events_page, "reasons.md": reasons, "metrics.md": metrics}


def main() -> int:
    """Write or check the pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    check, stale = parser.parse_args().check, []
    for name, page in PAGES.items():
        path, text = ROOT / "docs" / name, page()
        if not check:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
    if check:
        print("\n".join(f"stale: docs/{name}" for name in stale) or "pages are fresh")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
