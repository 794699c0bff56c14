"""``interlock run`` where its mesh refuses to start (SVC-2)."""

from __future__ import annotations

import pytest

from interlock.cli.main import app


@pytest.mark.req("SVC-2")
def test_a_mesh_that_refuses_to_start_says_why(monkeypatch, tmp_path, capsys):
    """The refusal of the mesh is told with its reason and hint: it once ended in a colon and nothing."""
    monkeypatch.setenv("INTERLOCK_STATE_DIR", str(tmp_path))
    code = app(["run", "--profile", "regulated", "--", "true"], prog_name="interlock", standalone_mode=False)
    told = capsys.readouterr().err
    assert code == 2
    assert told.startswith("error: MESH_NOT_STARTED: the mesh did not start: SETTINGS_INVALID: review_required"), told
    assert "hint: see docs/configuration.md" in told
