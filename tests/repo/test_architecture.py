"""The pages for contributors: every file that they name is there, and the picture is one that Mermaid draws."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import mermaidx
import pytest

from tests.repo.tree import files
from tests.support.paths import PACKAGE, ROOT

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
[PICTURE] = re.findall(r"^```mermaid\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)

PLACE = re.compile(r"`([\w.-]+(?:/[\w.-]+)*(?:\.(?:py|lua|sql|toml|yaml|proto)|/))`")
HOUSE = re.compile(r"^  subgraph (\w+)\n(.*?)^  end$", re.MULTILINE | re.DOTALL)
NODE = re.compile(r"\b([a-z]\w*)(?:\[([^\]]+)\])?(?= *(?:-->|$))", re.MULTILINE)


def places() -> list[str]:
    """Return every file and folder that the pages name, each once."""
    return sorted(set(PLACE.findall(PAGE + CONTRIBUTING)))


def rooms() -> list[tuple[str, str]]:
    """Return house and name of every room in the picture."""
    labels = {name: label for name, label in NODE.findall(PICTURE) if label}
    nodes = [(house, name) for house, body in HOUSE.findall(PICTURE) for name, _ in NODE.findall(body)]
    return sorted({(house, labels.get(name, name)) for house, name in nodes})


@pytest.mark.parametrize("place", places())
def test_every_file_on_the_pages_exists(place):
    """A file that was moved is moved on the page; a name without a folder is some file's."""
    by_name = "/" not in place and any(path.name == place for path in files())

    assert by_name or (PACKAGE / place).exists() or (ROOT / place).exists()


@pytest.mark.parametrize(("house", "room"), rooms())
def test_every_room_of_the_picture_exists(house, room):
    """A node inside a house is a folder or a file of it."""
    assert (PACKAGE / house / room).exists()


def test_the_page_names_files_at_all():
    """The tests above have something to look at: three ways and a table."""
    assert len(places()) > 50
    assert {("sidecar", "guard.py"), ("sidecar", "fronts"), ("audit", "sealing")} <= set(rooms())


def test_the_picture_is_drawn():
    """By Mermaid itself, with every room in it."""
    drawn = mermaidx.render(PICTURE).svg()
    words = {word for node in ET.fromstring(drawn).iter() for word in "".join(node.itertext()).split()}

    assert {room for _, room in rooms()} <= words


@pytest.mark.parametrize("way", re.findall(r"^\*\*.*?\n\n((?:\d+\. .*\n)+)", PAGE, re.MULTILINE))
def test_a_way_is_ten_files_at_most(way):
    """A longer one is not read."""
    assert 5 <= len(way.splitlines()) <= 10
