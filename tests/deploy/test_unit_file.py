"""The systemd unit: read by systemd where it is installed, and held to what it promises."""

from __future__ import annotations

import configparser
import shutil
import subprocess

import pytest

from interlock.runtime.settings.declarations import SettingDeclarations
from tests.support.paths import ROOT

UNIT = ROOT / "deploy" / "systemd" / "interlock.service"
pytestmark = pytest.mark.req("KUB-1")


def test_the_unit_drains_before_it_is_killed_and_gains_nothing():
    """No root, no capability, read-only system, and a stop time above the default drain."""
    unit = configparser.ConfigParser(interpolation=None, strict=False)
    unit.optionxform = str
    unit.read(UNIT)
    service = unit["Service"]

    assert float(service["TimeoutStopSec"]) > SettingDeclarations.model_fields["drain_s"].default
    assert ("yes", "yes", "strict", "") == tuple(
        service[name] for name in ("DynamicUser", "NoNewPrivileges", "ProtectSystem", "CapabilityBoundingSet")
    )


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed here")
def test_systemd_reads_the_unit(tmp_path):
    """Every directive is one that systemd knows."""
    copied = tmp_path / "interlock.service"
    copied.write_text(UNIT.read_text().replace("/opt/interlock/bin/python3", "/bin/true"))
    said = subprocess.run(["systemd-analyze", "verify", str(copied)], capture_output=True, text=True, check=False)

    assert "Unknown" not in said.stderr, said.stderr
