"""The operator's commands, inside the audit service's container, as `kubectl exec deployment/il-audit` runs them."""

from __future__ import annotations

from tests.kube.node.image import ENTRYPOINT
from tests.kube.release import MESH, RELEASE, Release


def command(release: Release, *arguments: str) -> str:
    """Run an `interlock` command beside the audit service; return what it printed, and fail where it fails."""
    pods = [one for one in release.stage.node.pods.values() if (one.namespace, one.ending.is_set()) == (MESH, False)]
    audit = next(one for one in pods if one.name.startswith(f"{RELEASE}-audit-"))
    done = audit.containers()[-1].run([*ENTRYPOINT, *arguments], 60)
    assert done.returncode == 0, (done.stdout + done.stderr).decode()
    return done.stdout.decode()
