"""Models by URL and hash: what is not the pinned file is not kept (DPE-17)."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from interlock.domain.errors import Kind, Refused
from interlock.dpe.inference.models import check, manifest
from interlock.dpe.inference.pull import PullRules, pull
from tests.support.dpe import own_model

pytestmark = pytest.mark.req("DPE-17")
LOCAL = PullRules(local=True)
LABELS = ("entailment", "neutral", "contradiction")


class Site(BaseHTTPRequestHandler):
    """Serves a folder, redirects below /to/, and breaks off below /cut/."""

    root = Path()

    def do_GET(self) -> None:
        if self.path.startswith("/to/"):
            self.send_response(302)
            self.send_header("location", self.path.removeprefix("/to/"))
            self.end_headers()
            return
        cut = self.path.startswith("/cut/")
        path = self.root / self.path.removeprefix("/cut/").lstrip("/")
        if not path.is_file():
            self.send_error(404)
            return
        data = path.read_bytes()
        self.send_response(200)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[: len(data) // 2] if cut else data)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    """URL of a loopback server of tmp_path / "site", which holds one slot."""
    own_model(tmp_path / "site" / "nli", [3.0, 0.0, 0.0], LABELS)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Here", (Site,), {"root": tmp_path / "site"}))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def refused(url: str, digest: str, folder: Path, rules: PullRules = LOCAL) -> Refused:
    """Return the refusal, having seen that nothing was left behind."""
    with pytest.raises(Refused) as found:
        pull(url, digest, slot="nli", folder=folder, rules=rules)
    assert not folder.exists() or not list(folder.iterdir())
    return found.value


@pytest.mark.parametrize("scheme", ["http", "file"])
def test_a_manifest_brings_its_whole_slot(tmp_path, site, scheme):
    """One pinned hash: the manifest's; the files are pinned by it."""
    base = site if scheme == "http" else (tmp_path / "site").as_uri()
    written = pull(
        f"{base}/nli/manifest.json", sha256(tmp_path / "site/nli/manifest.json"), slot="nli", folder=tmp_path / "got",
        rules=LOCAL,
    )  # fmt: skip

    assert {path.name for path in written} == {"manifest.json", "model.onnx", "tokenizer.json"}
    check(manifest("nli", tmp_path / "got"))
    assert not list((tmp_path / "got").glob(".pull*"))


def test_a_single_file_is_put_beside_the_others(tmp_path, site):
    """Any other URL brings one file, replaced whole."""
    (tmp_path / "got").mkdir()
    (tmp_path / "got" / "model.onnx").write_text("old")
    model = tmp_path / "site/nli/model.onnx"
    pull(f"{site}/nli/model.onnx", sha256(model), slot="nli", folder=tmp_path / "got", rules=LOCAL)

    assert (tmp_path / "got" / "model.onnx").read_bytes() == model.read_bytes()


def test_other_bytes_are_refused_and_not_kept(tmp_path, site):
    """The hash decides, and what was there stays."""
    found = refused(f"{site}/nli/model.onnx", "0" * 64, tmp_path / "got")

    assert (found.kind, found.reason) == (Kind.UNAVAILABLE, "MODEL_HASH_MISMATCH")
    assert found.metadata["found"] == sha256(tmp_path / "site/nli/model.onnx")


def test_a_file_of_a_slot_that_is_not_the_manifests_is_refused(tmp_path, site):
    """A right manifest over a swapped model brings nothing at all."""
    (tmp_path / "site/nli/model.onnx").write_bytes(b"swapped")
    url, digest = f"{site}/nli/manifest.json", sha256(tmp_path / "site/nli/manifest.json")

    assert refused(url, digest, tmp_path / "got").reason == "MODEL_HASH_MISMATCH"


def test_a_manifest_of_another_slot_is_refused(tmp_path, site):
    """An NLI model is not taken for embeddings."""
    digest = sha256(tmp_path / "site/nli/manifest.json")
    with pytest.raises(Refused, match="MODEL_MANIFEST_INVALID"):
        pull(f"{site}/nli/manifest.json", digest, slot="embed", folder=tmp_path / "got", rules=LOCAL)


@pytest.mark.parametrize("path", ["/nli/none.onnx", "/cut/nli/model.onnx"])
def test_what_does_not_arrive_whole_is_refused(tmp_path, site, path):
    """Not found, or broken off."""
    found = refused(site + path, "0" * 64, tmp_path / "got")

    assert (found.kind, found.reason) == (Kind.UNAVAILABLE, "PULL_FAILED")


def test_a_file_beyond_the_bound_is_refused(tmp_path, site):
    """A server that sends without end fills no disk."""
    model = tmp_path / "site/nli/tokenizer.json"
    found = refused(
        f"{site}/nli/tokenizer.json", sha256(model), tmp_path / "got", PullRules(most_bytes=1000, local=True)
    )

    assert (found.kind, found.reason) == (Kind.EXHAUSTED, "MODEL_TOO_LARGE")


@pytest.mark.parametrize("url", ["http://models.example/m.onnx", "ftp://models.example/m.onnx", "models/m.onnx", "file:///1.onnx", "http://127.0.0.1:1/m.onnx", "https://models.example/"])  # fmt: skip
def test_only_https_is_fetched(tmp_path, url):
    """Nothing over a connection that anyone could answer, and nothing from this machine, unless asked for."""
    assert refused(url, "0" * 64, tmp_path / "got", PullRules()).reason == "URL_REFUSED"


def test_a_redirect_leads_nowhere_that_the_url_could_not(tmp_path, site):
    """Loopback redirects to loopback, not to plain http elsewhere, and not for ever."""
    model = tmp_path / "site/nli/model.onnx"
    pull(f"{site}/to//nli/model.onnx", sha256(model), slot="nli", folder=tmp_path / "right", rules=LOCAL)
    assert refused(f"{site}/to/http://models.example/m.onnx", "0" * 64, tmp_path / "got").reason == "URL_REFUSED"
    (tmp_path / "site" / "loop").mkdir()
    loop = f"{site}/to/" * 8 + "/nli/model.onnx"
    assert refused(loop, sha256(model), tmp_path / "got").reason == "PULL_FAILED"


@pytest.mark.parametrize("digest", ["", "0" * 63, "G" * 64, "sha256:" + "0" * 64])
def test_a_hash_that_is_none_is_refused(tmp_path, digest):
    """Before anything is fetched."""
    assert refused("https://models.example/m.onnx", digest, tmp_path / "got").reason == "SHA256_INVALID"


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    """A file where the folder should be."""
    (tmp_path / "file").write_text("")
    with pytest.raises(Refused, match="FOLDER_UNWRITABLE"):
        pull("https://models.example/m.onnx", "0" * 64, slot="nli", folder=tmp_path / "file", rules=LOCAL)
