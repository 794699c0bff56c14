"""Failpoints: off by default, exact about what they do, and refused when they are misspelt."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from interlock.domain.errors import Refused
from interlock.runtime import failpoints
from tests.support.paths import PACKAGE


@pytest.fixture(autouse=True)
def _off_again() -> Iterator[None]:
    yield
    failpoints.configure("")


async def test_without_rules_nothing_happens() -> None:
    """A process that was not asked to fail passes every point."""
    failpoints.configure("")
    for name in failpoints.POINTS:
        await failpoints.reached(name)
        failpoints.reached_sync(name)


async def test_an_error_is_raised_at_the_pass_that_was_named_and_at_no_other() -> None:
    """The second pass fails; the first and the third do not."""
    failpoints.configure("audit.before_commit:error@2")
    failpoints.reached_sync("audit.before_commit")
    with pytest.raises(Refused) as refused:
        await failpoints.reached("audit.before_commit")
    assert refused.value.reason == "FAILPOINT"
    failpoints.reached_sync("audit.before_commit")


async def test_a_delay_lets_the_step_go_on() -> None:
    """Waiting is no failure, and other points are not touched."""
    failpoints.configure("sidecar.before_seal:delay=1; sidecar.after_seal:error")
    await failpoints.reached("sidecar.before_seal")
    with pytest.raises(Refused):
        await failpoints.reached("sidecar.after_seal")


def test_a_kill_ends_the_process_at_once() -> None:
    """Nothing after the point runs, no handler and no finally."""
    code = (
        "from interlock.runtime import failpoints\n"
        "failpoints.configure('session.before_settle:kill')\n"
        "try:\n    failpoints.reached_sync('session.before_settle')\nfinally:\n    print('went on')\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == -9
    assert "went on" not in ended.stdout


@pytest.mark.parametrize(
    "text", ["nowhere:kill", "audit.before_commit", "audit.before_commit:explode", "a:kill@x", "x"]
)
def test_a_misspelt_rule_refuses_to_start(text: str) -> None:
    """A fault that silently does not happen would prove nothing."""
    with pytest.raises(Refused) as refused:
        failpoints.configure(text)
    assert refused.value.reason == "FAILPOINTS_INVALID"


def test_every_listed_point_is_somewhere_in_the_code_and_no_other() -> None:
    """A point that nothing reaches is a promise that nobody keeps."""
    used: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        if path.name != "failpoints.py" and "api" not in path.parts:
            used |= set(re.findall(r"""reached(?:_sync)?\(\s*["']([a-z_.]+)["']""", path.read_text(encoding="utf-8")))
    assert used == set(failpoints.POINTS)
