"""The settings of a mesh in a Kubernetes cluster, beside the others: one flat model in several files."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from interlock.runtime.settings.emergencies import EmergencyDeclarations
from interlock.runtime.settings.values import HttpsUrl, Namespaces, Seconds


class PodDeclarations(EmergencyDeclarations):
    """The settings that say which pod a sidecar is in, and how the API server is asked."""

    # == Kubernetes

    pod_token_file: Path | None = None
    """Projected token of the service account of the sidecar's pod: policy says whose it is, and that is the caller, whatever key it sends.
    The injector sets it. Absent: callers are told apart by their keys."""
    pod_uid: str = Field(default="", max_length=64)
    """Id of the sidecar's pod (metadata.uid), to which its token has to be bound. The injector sets it."""
    pod_identity_cache_s: Seconds = 60
    """How long a sidecar acts as its pod after policy has identified it, seconds. It asks anew after half of that."""
    pod_identity_audience: str = Field(default="", max_length=253)
    """Audience of the tokens by which policy identifies pods. Absent: it identifies none (POD_IDENTITY_OFF)."""
    pod_identity_namespaces: Namespaces = ""
    """Namespaces whose pods policy identifies, by commas. Absent: none."""
    kubernetes_url: HttpsUrl = "https://kubernetes.default.svc"
    """The API server of the cluster: policy asks it about tokens, the injector for pods without a sidecar where its rules say so."""
    kubernetes_folder: Path = Path("/var/run/secrets/kubernetes.io/serviceaccount")
    """Folder with token and ca.crt of this process's own service account."""
