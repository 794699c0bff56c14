"""``interlock demo --kernel`` as a program runs it."""

from __future__ import annotations

import json

import pytest

from tests.e2e.test_demo import start


@pytest.mark.models
@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.req("KRN-1", "KRN-5", "KRN-7")
def test_the_demonstration_of_the_kernel_keeps_every_promise(tmp_path):
    """Five processes spend 100 and no more, what the killed one began is made up for, the stop stops all; the peer overspends."""
    process = start(tmp_path, "--kernel", "-o", "json")
    out, err = process.communicate(timeout=280)
    assert process.returncode == 0, err
    shown = json.loads(out)
    assert shown["broken"] == []
    assert shown["ledger"]["gross"] == 100
    assert shown["ledger"]["stopped"]
    assert {"KERNEL_SAGA_ROLLED_BACK", "KERNEL_COMPENSATED"} <= set(shown["trace"])
    spent = int(shown["peer"].partition(" spent ")[2].partition(" of ")[0])
    assert spent > 100
    for part in ("SIGKILL", "emergency stop", "audit verify", "as they were sealed"):
        assert part in err
