"""Where things lie in the checkout, whatever folder a test lives in."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "services" / "interlock"
TESTS = ROOT / "tests"
