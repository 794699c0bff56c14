"""What the operator lets the injector do: a file with the sidecar's image, variables and Secret, and rules per namespace.

What is in this file an agent's author cannot set. ``request.py`` has what a pod's annotations may.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from interlock.domain.errors import invalid
from interlock.runtime.settings.profile_files import ProfileName
from interlock.runtime.settings.strict_yaml import parse_yaml


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PodTokens(_Closed):
    """The projected token by which the mesh knows a sidecar's pod."""

    audience: str = Field(min_length=1, max_length=253)
    """Audience of the token: that of this mesh alone."""
    seconds: int = Field(default=600, ge=600, le=86_400)
    """How long a token is good; the kubelet renews it after four fifths of that. Kubernetes gives none for less than ten minutes."""


class Reconciling(_Closed):
    """Looking for pods that run without their sidecar."""

    action: Literal["report", "evict"] = "report"
    """report: counted, and told by an event beside the pod. evict: those that something creates anew are evicted besides."""
    seconds: float = Field(default=60, ge=1, le=86_400)
    """Pause between two looks."""
    namespace: str = Field(min_length=1)
    """Namespace of the mesh, which is left alone."""


class NamespaceRules(_Closed):
    """What differs in one namespace."""

    profile: ProfileName | None = None
    """Profile of its sidecars. Absent: that of the mesh."""
    opt_out: bool = True
    """Whether a pod may say interlock.dev/inject: "false"."""
    env: dict[str, str] = Field(default_factory=dict)
    """Further INTERLOCK_ variables of its sidecars, over those of the mesh."""


class InjectorRules(_Closed):
    """The whole file."""

    image: str = Field(min_length=1)
    """Image of the sidecar."""
    image_pull_policy: str = "IfNotPresent"
    """When it is pulled."""
    secret: str = Field(min_length=1)
    """Secret in the pod's own namespace with tls.crt, tls.key and ca.crt; beside it NAME-binding with binding-key."""
    profile: ProfileName = "observe"
    """Profile of sidecars."""
    env: dict[str, str] = Field(default_factory=dict)
    """INTERLOCK_ variables of every sidecar."""
    resources: dict[str, dict[str, str]] = Field(default_factory=dict)
    """Requests and limits of a sidecar, where a pod names none."""
    native: bool = True
    """Whether a sidecar is an init container that restarts (Kubernetes 1.29 and later)."""
    pod_tokens: PodTokens | None = None
    """Token of each sidecar. Absent: none, and callers are told apart by the keys that they send."""
    reconcile: Reconciling | None = None
    """Absent: nobody looks for pods without their sidecar. Needs rights to list pods and namespaces and to create events."""
    namespaces: dict[str, NamespaceRules] = Field(default_factory=dict)
    """Rules by the name of the namespace."""

    def of(self, namespace: str) -> NamespaceRules:
        """Return the rules of a namespace."""
        return self.namespaces.get(namespace) or NamespaceRules()

    def floor(self, namespace: str) -> ProfileName:
        """Return the profile that a pod of a namespace has at least."""
        return self.of(namespace).profile or self.profile


@dataclass(frozen=True)
class PodWishes:
    """What a pod asks for by its annotations, after they were checked."""

    profile: ProfileName
    log_level: str = ""
    resources: dict[str, dict[str, str]] = field(default_factory=dict)
    native: bool = True
    taken_secret: tuple[str, str] | None = None
    """Name and key of the Secret with the provider's key."""


def read_rules(contents: Sequence[bytes], path: Path) -> InjectorRules:
    """Return the rules in a file. Refused with FILE_MALFORMED or INJECTOR_RULES_INVALID."""
    found: Any = parse_yaml(contents[0], path, secret=False)
    try:
        return InjectorRules.model_validate(found)
    except ValidationError as error:
        problems = [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors(include_input=False)]
    raise invalid("INJECTOR_RULES_INVALID", f"{path}: {'; '.join(problems)}")
