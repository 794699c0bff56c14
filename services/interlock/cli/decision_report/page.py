"""The page of a run: one file without scripts, that loads nothing and shows hidden characters of what agents wrote."""

from __future__ import annotations

import base64
import hashlib
import importlib.resources

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from interlock.oversight.markup import said
from interlock.oversight.runs.run import ShownRun
from interlock.oversight.runs.timeline import timeline
from interlock.runtime.clock import iso8601

_FOLDER = "interlock.cli.decision_report"
ENVIRONMENT = Environment(
    loader=PackageLoader(_FOLDER, "templates"), autoescape=True, undefined=StrictUndefined, auto_reload=False,
    trim_blocks=True, lstrip_blocks=True,
)  # fmt: skip


def page(run: ShownRun) -> str:
    """Return the page."""
    style = importlib.resources.files(_FOLDER).joinpath("templates", "run.css").read_text(encoding="utf-8")
    return ENVIRONMENT.get_template("run.html").render(
        run=run, said=said, at=lambda cycle: iso8601(cycle.at_us)[:19].replace("T", " "), style=Markup(style),  # noqa: S704 - our own file
        policy=f"default-src 'none'; style-src '{_hash(style)}'; base-uri 'none'; form-action 'none'", line=timeline(run),
    )  # fmt: skip


def _hash(style: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
