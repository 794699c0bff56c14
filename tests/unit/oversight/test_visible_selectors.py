"""Characters that show nothing beside what they follow are shown by their code points, whatever block they are in (A-31)."""

from __future__ import annotations

import pytest

from interlock.oversight.visible import visible


@pytest.mark.req("OVR-5")
@pytest.mark.parametrize(
    "hidden", [chr(0xE0100), chr(0xE0150), chr(0xE01EF), chr(0x180B), chr(0x180F), chr(0x1D159), chr(0x16FE4)]
)
def test_every_variation_selector_and_blank_letter_is_shown(hidden):
    """A byte each hides in the 240 selectors of plane 14, behind every letter of an answer that a reviewer reads."""
    assert visible(f"pay{hidden} 9") == f"pay\u27e6U+{ord(hidden):04X}\u27e7 9"
