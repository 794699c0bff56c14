"""The environment of the demonstration's mesh."""

from __future__ import annotations

from pathlib import Path

from interlock.demo.mesh import environment


def test_settings_of_the_person_who_runs_it_do_not_reach_the_demo(monkeypatch):
    """A provider, key or port that is set in the shell stays out: the demonstration is the same everywhere."""
    monkeypatch.setenv("INTERLOCK_UPSTREAM_BASE_URL", "https://real.example/v1")
    monkeypatch.setenv("INTERLOCK_SESSION_PORT", "7081")
    env = environment(Path("state"), {"INTERLOCK_MAX_WINDOWS": "8"})

    assert "INTERLOCK_UPSTREAM_BASE_URL" not in env
    assert "INTERLOCK_SESSION_PORT" not in env
    assert (env["INTERLOCK_SIDECAR_HTTP_PORT"], env["INTERLOCK_MAX_WINDOWS"]) == ("0", "8")


def test_everything_else_of_the_environment_is_kept(monkeypatch):
    """A proxy certificate or a locale still counts."""
    monkeypatch.setenv("SOME_LOCALE", "C.UTF-8")

    assert environment(Path("state"), {})["SOME_LOCALE"] == "C.UTF-8"
