"""What a page shows to copy runs as it is written, or it is on a list with the reason why it cannot."""

from __future__ import annotations

import pytest

from tests.repo.run_blocks import ALONE, BY_LINE, LISTED, MESH
from tests.support.doc_blocks import Block, Desk, blocks, session_of
from tests.support.policy import agents
from tests.support.servers.processes import environment

BLOCKS = {block.name: block for block in blocks(BY_LINE)}


def test_every_block_is_run_or_listed_with_a_reason():
    """A new block belongs into one of the three lists, and what is on a list is on a page."""
    named = [*ALONE, *MESH, *LISTED]

    assert sorted(BLOCKS.keys() - set(named)) == [], "neither run nor listed"
    assert sorted(set(named) - BLOCKS.keys()) == [], "on no page"
    assert len(named) == len(set(named))
    assert all(LISTED.values())


def test_no_two_blocks_have_one_name():
    """A name stands for one block, so that none is run for another."""
    names = [block.name for block in blocks(BY_LINE)]

    assert [name for name in names if names.count(name) > 1] == []


@pytest.fixture
def desk(tmp_path):
    """A folder with what the pages tell a reader to have."""
    made = Desk.laid(tmp_path, environment(tmp_path / "state", {"profile": "observe"}))
    agents.write(tmp_path / "agents.yaml", agents.SPECIFICATION)
    return made


@pytest.mark.parametrize("name", sorted(name for name in ALONE if BLOCKS[name].language != "console"))
def test_a_block_runs_as_it_is_written(desk, name):
    """It ends with the exit code that its page says, and no traceback."""
    done = desk.run(BLOCKS[name])

    assert done.returncode == ALONE[name], done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", sorted(name for name in ALONE if BLOCKS[name].language == "console"))
def test_a_console_session_runs_and_prints_what_the_page_shows(desk, name):
    """The commands behind the prompts, and every line that stands below them."""
    commands, printed = session_of(BLOCKS[name])
    done = desk.run(Block(BLOCKS[name].page, "sh", commands))

    assert done.returncode == ALONE[name], done.stdout + done.stderr
    assert all(line in done.stdout + done.stderr for line in printed.splitlines())
