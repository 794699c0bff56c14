"""Becomes a container: runs in a mount namespace and a network namespace of its own, and ends in ``execve``.

launch.py SPEC.json: mounts [source, place, read only], root (an empty folder), read_only, uid, gid, groups, cwd, argv, env.
Standard library alone, and no import of ours: it runs before anything of the container is there.
"""

import ctypes
import json
import os
import sys
from pathlib import Path

_BIND, _REC, _REMOUNT, _READ_ONLY, _NO_SUID = 4096, 16384, 32, 1, 2
_NO_NEW_PRIVILEGES, _DROP_BOUND = 38, 24
_LIBC = ctypes.CDLL(None, use_errno=True)


def mount(source: str, place: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """mount(2), as the C library has it."""
    given = (source.encode(), place.encode(), kind.encode() or None, flags, options.encode() or None)
    if _LIBC.mount(given[0], given[1], given[2], ctypes.c_ulong(given[3]), given[4]):
        raise OSError(ctypes.get_errno(), f"mount {source} at {place}")


def place_for(source: str, place: str) -> None:
    """Make the folder or the file that something is mounted over."""
    if Path(source).is_dir():
        Path(place).mkdir(parents=True, exist_ok=True)
        return
    Path(place).parent.mkdir(parents=True, exist_ok=True)
    Path(place).touch()


def main(path: str) -> None:
    spec = json.loads(Path(path).read_text(encoding="utf-8"))
    os.umask(0o022)
    root = spec["root"]
    mount("tmpfs", root, "tmpfs", 0, "mode=755,size=64m")
    Path(root, "tmp").mkdir()
    Path(root, "tmp").chmod(0o1777)
    for source, place, read_only in [*spec["mounts"], ["/proc", "/proc", False], ["/dev", "/dev", False]]:
        inside = root + place
        place_for(source, inside)
        mount(source, inside, flags=_BIND | _REC)
        if read_only:
            mount("none", inside, flags=_BIND | _REMOUNT | _READ_ONLY | _NO_SUID)
    Path(root + spec["cwd"]).mkdir(parents=True, exist_ok=True)
    if spec["read_only"]:
        mount("none", root, flags=_REMOUNT | _READ_ONLY)
    os.chroot(root)
    os.chdir(spec["cwd"])
    for capability in range(41):
        _LIBC.prctl(_DROP_BOUND, capability, 0, 0, 0)
    os.setgroups(spec["groups"])
    os.setresgid(*[spec["gid"]] * 3)
    os.setresuid(*[spec["uid"]] * 3)
    _LIBC.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    os.execvpe(spec["argv"][0], spec["argv"], spec["env"])


if __name__ == "__main__":
    main(sys.argv[1])
