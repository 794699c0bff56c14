"""Labelled data by manifest: a file that is not the pinned one, or may not be trained on, is refused.

A manifest (nli_data.json, ner_data.json) names sets with licence and tier, and files with their SHA-256. Standard
library only.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Row = dict[str, Any]


class NotAllowedError(Exception):
    """A file that may not be read for this purpose, or is not the pinned one."""


@dataclass
class Data:
    """The files of a folder that a manifest describes. ``used`` collects what was read to train on."""

    folder: Path
    sets: Mapping[str, Mapping[str, Any]]
    files: Mapping[str, Mapping[str, str]]
    used: set[str] = field(default_factory=set)

    @staticmethod
    def described_by(manifest: Path, folder: Path) -> Data:
        """Return the data of *folder* as *manifest* describes it; raises ValueError for a file without a set."""
        told = json.loads(manifest.read_text(encoding="utf-8"))
        if strange := [name for name in told["files"] if name.partition("/")[0] not in told["sets"]]:
            raise ValueError(f"{manifest}: no set for {strange}")
        return Data(folder, told["sets"], told["files"])

    def names(self, prefix: str) -> list[str]:
        """Return the files of the manifest whose names begin so, in order."""
        return sorted(name for name in self.files if name.startswith(prefix))

    def text(self, name: str, *, train: bool) -> str:
        """Return the text of a packed file; raises NotAllowedError."""
        return gzip.decompress(self._checked(name, train=train)).decode("utf-8").removeprefix("\ufeff")

    def _checked(self, name: str, *, train: bool) -> bytes:
        """Return the bytes of a file that the manifest allows for this purpose; raises NotAllowedError."""
        if name not in self.files:
            raise NotAllowedError(f"{name} is not in the manifest")
        told = self.sets[name.partition("/")[0]]
        if train and told["tier"] != "A":
            raise NotAllowedError(f"{name} is of tier {told['tier']} ({told['licence']}): it may not be trained on")
        if train and self.files[name]["use"] != "train":
            raise NotAllowedError(f"{name} is kept to measure on")
        raw = (self.folder / name).read_bytes()
        if (found := hashlib.sha256(raw).hexdigest()) != self.files[name]["sha256"]:
            raise NotAllowedError(f"{name} has sha256 {found}, pinned is {self.files[name]['sha256']}")
        if train:
            self.used.add(name)
        return raw

    def plain(self, name: str, *, train: bool = True) -> str:
        """Return the text of a file that is not packed."""
        return self._checked(name, train=train).decode("utf-8")

    def lines(self, name: str, *, train: bool) -> list[Row]:
        """Return the rows of a JSON-lines file."""
        return [json.loads(line) for line in self.text(name, train=train).split("\n") if line.strip()]

    def table(self, name: str, *, train: bool) -> list[Row]:
        """Return the rows of a file with tabs (no quoting) or commas."""
        tabs = ".tsv" in name
        quoting = csv.QUOTE_NONE if tabs else csv.QUOTE_MINIMAL
        stream = io.StringIO(self.text(name, train=train))
        return list(csv.DictReader(stream, delimiter="\t" if tabs else ",", quoting=quoting))

    def attribution(self) -> list[str]:
        """Return one line for each set that was trained on: its name, citation and licence."""
        sets = sorted({name.partition("/")[0] for name in self.used})
        return [f"{name}: {self.sets[name]['cite']}; {self.sets[name]['licence']}" for name in sets]
