"""Starting Triton where it cannot start: each want is named, with what to do (DPE-18)."""

from __future__ import annotations

import sys

import pytest

from interlock.cli.local.tritonserver import TritonServer
from interlock.domain.errors import Refused

pytestmark = pytest.mark.req("DPE-18")


def test_without_the_wheel_it_says_what_to_install(tmp_path, monkeypatch):
    """The server comes without its own dependencies; the command for that is in the hint."""
    without = [place for place in sys.path if "site-packages" not in place]
    monkeypatch.setattr(sys, "path", without)
    monkeypatch.setattr(sys, "path_importer_cache", {})

    with pytest.raises(Refused) as refused:
        TritonServer(tmp_path, tmp_path).start()
    assert refused.value.reason == "TRITON_MISSING"
    assert "--no-deps nvidia-pytriton==" in refused.value.metadata["hint"]


def test_a_python_that_the_wheel_has_no_interpreter_for_is_named(tmp_path, monkeypatch):
    """The backend runs this Python's interpreter and no other."""
    monkeypatch.setattr(sys, "version_info", type("Version", (), {"major": 3, "minor": 99})())

    with pytest.raises(Refused) as refused:
        TritonServer(tmp_path, tmp_path).start()
    assert refused.value.reason == "TRITON_PYTHON_UNSUPPORTED"
    assert "3.99" in refused.value.message


def test_an_empty_repository_does_not_look_ready(tmp_path):
    """A server that ends while it starts is a refusal that names its log, and leaves nothing running."""
    server = TritonServer(tmp_path / "none", tmp_path)

    with pytest.raises(Refused) as refused:
        server.start()
    assert refused.value.reason == "TRITON_FAILED"
    assert str(server.log) in refused.value.metadata["hint"]
    assert server.log.is_file()
    assert server.pid is None
