"""A pod's volumes as folders, with the owners and modes that a kubelet gives them."""

from __future__ import annotations

import base64
import os
import shutil
from pathlib import Path

from tests.kube.cluster.api import Api, Json

Files = dict[str, tuple[bytes, int]]


class Volumes:
    """The volumes of one pod below *folder*; *ca* is the authority that its service account trusts."""

    def __init__(self, api: Api, pod: Json, folder: Path) -> None:
        self._api, self._pod, self._folder = api, pod, folder
        self._namespace = pod["metadata"]["namespace"]
        self._group = pod["spec"].get("securityContext", {}).get("fsGroup")
        self._claims = {
            one["name"]: one["persistentVolumeClaim"]["claimName"]
            for one in pod["spec"].get("volumes", ())
            if "persistentVolumeClaim" in one
        }
        self.claims = folder.parent.parent.parent / "claims"
        self._written: dict[str, Files] = {}
        self._tokens: dict[tuple[str, str, int], bytes] = {}

    def path(self, name: str) -> Path:
        """Return the folder of a volume; that of a claim is beside all pods, and stays when they end."""
        claim = self._claims.get(name)
        return self.claims / self._namespace / claim if claim else self._folder / name

    def update(self) -> None:
        """Make what is not there yet, and bring what comes from the cluster up to date.

        Raises Refusal where a Secret or ConfigMap is not there, as a kubelet waits for it.
        """
        for volume in self._pod["spec"].get("volumes", ()):
            place = self.path(volume["name"])
            if "emptyDir" in volume or "persistentVolumeClaim" in volume:
                self._empty(place)
                continue
            files = self._files(volume)
            if self._written.get(volume["name"]) != files:
                self._write(place, files)
                self._written[volume["name"]] = files

    def _empty(self, place: Path) -> None:
        if not place.exists():
            place.mkdir(parents=True)
            os.chown(place, 0, self._group or 0)
            place.chmod(0o2777 if self._group else 0o777)

    def _files(self, volume: Json) -> Files:
        """Return content and mode of each file."""
        if "projected" in volume:
            held = volume["projected"]
            made: Files = {}
            for source in held["sources"]:
                made |= self._projected(source, held.get("defaultMode", 0o644))
            return made
        for kind, said, name in (("secret", "secretName", "secrets"), ("configMap", "name", "configmaps")):
            if kind in volume:
                held = volume[kind]
                return self._object(name, held[said], held.get("items"), held.get("defaultMode", 0o644))
        raise AssertionError(f"the stand-in has no volume such as {volume}")

    def _object(self, kind: str, name: str, items: list[Json] | None, mode: int) -> Files:
        data = decoded(self._api.get(kind, name, self._namespace))
        wanted = items or [{"key": key, "path": key} for key in data]
        return {one["path"]: (data[one["key"]], one.get("mode", mode)) for one in wanted}

    def _projected(self, source: Json, mode: int) -> Files:
        if "serviceAccountToken" in source:
            asked = source["serviceAccountToken"]
            return {asked["path"]: (self._token(asked), 0o640 if self._group else mode)}
        if "configMap" in source:
            return self._object("configmaps", source["configMap"]["name"], source["configMap"].get("items"), mode)
        if "secret" in source:
            return self._object("secrets", source["secret"]["name"], source["secret"].get("items"), mode)
        metadata = self._pod["metadata"]
        return {
            one["path"]: (str(metadata[one["fieldRef"]["fieldPath"].split(".")[-1]]).encode(), mode)
            for one in source["downwardAPI"]["items"]
        }

    def _token(self, asked: Json) -> bytes:
        """Return a token of the pod's service account, bound to the pod; asked for once (it lives longer than a test)."""
        audience, seconds = asked.get("audience", ""), asked.get("expirationSeconds", 3600)
        key = (audience, asked["path"], seconds)
        if key not in self._tokens:
            metadata = self._pod["metadata"]
            bound = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]}
            spec = {"audiences": [audience] if audience else [], "expirationSeconds": seconds, "boundObjectRef": bound}
            request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
            account = self._pod["spec"]["serviceAccountName"]
            made = self._api.create("serviceaccounts", request, self._namespace, f"{account}/token")
            self._tokens[key] = made["status"]["token"].encode()
        return self._tokens[key]

    def _write(self, place: Path, files: Files) -> None:
        """Put a new folder in the place of the old one by one rename of a link, as a kubelet does."""
        place.mkdir(parents=True, exist_ok=True)
        number = len(list(place.glob("..v*")))
        made = place / f"..v{number}"
        made.mkdir()
        for name, (content, mode) in files.items():
            file = made / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
            os.chown(file, 0, self._group or 0)
            file.chmod(mode | 0o440 if self._group else mode)
        (place / "..new").symlink_to(made.name)
        (place / "..new").replace(place / "..data")
        for name in {Path(one).parts[0] for one in files}:
            if not (place / name).is_symlink():
                (place / name).symlink_to(f"..data/{name}")

    def remove(self) -> None:
        """Remove them all."""
        shutil.rmtree(self._folder, ignore_errors=True)


def decoded(found: Json) -> dict[str, bytes]:
    """Return the data of a Secret or ConfigMap."""
    if found["kind"] == "Secret":
        return {key: base64.b64decode(value) for key, value in (found.get("data") or {}).items()}
    return {key: value.encode() for key, value in (found.get("data") or {}).items()}
