"""Pods of agents: a stock client of a provider, which knows nothing of what is injected beside it."""

from __future__ import annotations

import json
from typing import Any

from tests.kube.cluster.api import Json, until
from tests.kube.release import AGENTS, Release

SAYS = """
import json, os, sys, time
import openai

client = openai.OpenAI(max_retries=int(os.environ.get("RETRIES", "2")), timeout=60)
messages = [{"role": "system", "content": os.environ["SOURCE"]}, {"role": "user", "content": os.environ["QUESTION"]}]
for _ in range(int(os.environ.get("CALLS", "1"))):
    try:
        raw = client.chat.completions.with_raw_response.create(model="m", messages=messages)
        said, status, headers = raw.parse().choices[0].message.content, 200, raw.headers
    except openai.APIStatusError as error:
        said, status, headers = error.response.text, error.status_code, error.response.headers
    except openai.APIConnectionError as error:
        said, status, headers = repr(error.__cause__), 0, {}
    print(json.dumps({"status": status, "said": said, "headers": dict(headers)}), flush=True)
    time.sleep(float(os.environ.get("PAUSE", "0")))
"""
SOURCE, QUESTION = "The Premium Package costs $1,500 per office.", "What does the Premium Package cost?"
TRUE, FALSE = "The Premium Package costs $1,500 per office.", "The Premium Package costs $9,700 per office."

SECURITY: Json = {
    "allowPrivilegeEscalation": False, "runAsNonRoot": True, "runAsUser": 10002, "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"},
}  # fmt: skip


def container(command: str = SAYS, **env: str) -> Json:
    """Return an agent's container."""
    named = {"SOURCE": SOURCE, "QUESTION": QUESTION, **env}
    held = [{"name": name, "value": value} for name, value in named.items()]
    if "OPENAI_API_KEY" not in named:
        key = {"secretKeyRef": {"name": "provider", "key": "api-key"}}
        held.append({"name": "OPENAI_API_KEY", "valueFrom": key})
    return {
        "name": "agent", "image": "agent:1", "command": ["/opt/interlock/bin/python3", "-I", "-c", command],
        "env": held, "securityContext": SECURITY,
    }  # fmt: skip


def pod(*, annotations: dict[str, str] | None = None, labels: dict[str, str] | None = None, **spec: Any) -> Json:
    """Return an agent's pod, or the template of one."""
    spec.setdefault("containers", [container()])
    spec.setdefault("restartPolicy", "Never")
    return {"metadata": {"annotations": annotations or {}, "labels": labels or {}}, "spec": spec}


def named(name: str, made: Json) -> Json:
    """Return a pod with a name."""
    return {**made, "metadata": {**made["metadata"], "name": name}}


def job(release: Release, name: str, template: Json, place: str = AGENTS) -> list[Json]:
    """Run a Job to its end, and return the lines of its agent."""
    api = release.stage.api
    api.create("jobs", {"metadata": {"name": name}, "spec": {"backoffLimit": 0, "template": template}}, place)
    done = until(
        f"the Job {name} is over",
        lambda: _over(api.get("jobs", name, place)),
        180,
        lambda: release.stage.node.logs(place) + "\n" + events(release, place),
    )
    assert done == "Complete", release.stage.node.logs(place)
    return lines(release, name, place)


def _over(found: Json) -> str:
    conditions = found.get("status", {}).get("conditions", ())
    return next(
        (one["type"] for one in conditions if one["type"] in {"Complete", "Failed"} and one["status"] == "True"), ""
    )


def events(release: Release, place: str) -> str:
    """Return what controllers said of a namespace."""
    return "\n".join(one["message"] for one in release.stage.api.items("events", place))


def lines(release: Release, job_name: str, place: str = AGENTS) -> list[Json]:
    """Return what the agents of a Job or of a Deployment printed."""
    found = [one for one in release.stage.node.folders(place) if one.name.startswith(job_name)]
    said = [(one / "agent.log").read_text() for one in found if (one / "agent.log").exists()]
    return [json.loads(line) for text in said for line in text.splitlines() if line.startswith("{")]
