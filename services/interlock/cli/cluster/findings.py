"""What is wrong with an installation, by what the API server holds of it: each finding with what helps."""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from interlock.cli.cluster.installation import COMPONENT, VERSION, Everywhere, Installation, labels_of, references
from interlock.domain.errors import Refused
from interlock.injector.census import EXEMPT, Why, census
from interlock.injector.request import INJECT, NO, YES
from interlock.injector.rules import InjectorRules
from interlock.runtime.egress.kubernetes import Json
from interlock.runtime.rpc.health import ProbeFinding, ProbeStatus

MOST_TOLD = 20
"""Pods that are named one by one."""

Line = Callable[..., ProbeFinding]
OK, WARN, FAIL, SKIP = ProbeStatus.OK, ProbeStatus.WARN, ProbeStatus.FAIL, ProbeStatus.SKIP


def unread(line: Line, name: str, refused: Refused) -> ProbeFinding:
    """Return the finding for a part that could not be read: nothing is known of it, so it is not fine."""
    if refused.metadata.get("code") in {"401", "403"}:
        return line(name, FAIL, "it may not be read", "run the check with rights to read it (get, list)")
    return line(name, FAIL, refused.message, refused.metadata.get("hint") or f"reason {refused.reason}")


def deployments(release: Installation) -> Iterator[ProbeFinding]:
    """Check that every part has the replicas that it wants, all of its newest generation."""
    line = partial(ProbeFinding, "deployments")
    for one in release.deployments:
        name, status = one["metadata"]["name"], one.get("status") or {}
        wanted, ready = int((one["spec"] or {}).get("replicas", 1)), int(status.get("readyReplicas") or 0)
        updated = int(status.get("updatedReplicas") or 0)
        if wanted == 0:
            yield line(
                name, FAIL, "it has no replicas", f"kubectl -n {release.namespace} scale deployment {name} --replicas 2"
            )
        elif ready == 0:
            yield line(
                name,
                FAIL,
                f"none of {wanted} replicas is ready",
                f"kubectl -n {release.namespace} describe deployment {name}",
            )
        elif ready < wanted or updated < wanted:
            yield line(
                name, WARN, f"{ready} of {wanted} replicas are ready, {updated} are up to date", "wait, or see its pods"
            )
        else:
            yield line(name, OK, f"{ready} ready")


def versions(release: Installation) -> Iterator[ProbeFinding]:
    """Check that all parts are of one version and one image."""
    line = partial(ProbeFinding, "versions")
    said = {
        one["metadata"]["name"]: str((one["metadata"].get("labels") or {}).get(VERSION) or "none")
        for one in release.deployments
    }
    yield _alike(line, "chart", said, "finish the upgrade: helm upgrade")
    images = {
        name: image for one in release.deployments if (image := _image(one)) for name in [one["metadata"]["name"]]
    }
    rules = release.rules
    if isinstance(rules, InjectorRules):
        images["sidecars"] = rules.image
    yield _alike(line, "image", images, "every part and the sidecars take one image: image.tag or image.digest")


def webhook(release: Installation) -> Iterator[ProbeFinding]:
    """Check that the webhook is there, leads to ready pods, and that the API server trusts what they present."""
    line = partial(ProbeFinding, "webhook")
    injector = release.injector
    if injector is None:
        yield line("injector", SKIP, "this release injects no sidecars", "injector.enabled")
        return
    if isinstance(release.webhooks, Refused):
        yield unread(line, "configuration", release.webhooks)
    elif not release.webhooks:
        hint = "helm upgrade writes it again; until then no pod gets a sidecar, and pods start without"
        yield line("configuration", FAIL, "no MutatingWebhookConfiguration leads to this release", hint)
    else:
        yield from _hooks(line, release, release.webhooks)
    yield _endpoints(line, release)


def secrets(release: Installation) -> Iterator[ProbeFinding]:
    """Check that each Secret that a pod names is there, with its keys."""
    line, needed = partial(ProbeFinding, "secrets"), _keys(release)
    for (place, name), held in release.secrets.items():
        shown = f"{place}/{name}"
        if isinstance(held, Refused):
            yield unread(line, shown, held)
        elif held is None:
            yield line(shown, FAIL, "it is not there", _missing_hint(release, place))
        elif absent := sorted(key for key in needed.get((place, name), ()) if not held.get(key)):
            yield line(shown, FAIL, f"it has no key {', '.join(absent)}", "write it again, with all its keys")
        else:
            yield line(shown, OK, "there")


def _keys(release: Installation) -> Mapping[tuple[str, str], set[str]]:
    """Return the keys that each Secret has to have."""
    found: dict[tuple[str, str], set[str]] = {}
    for one in release.deployments:
        for name, named in references(one["spec"]["template"]["spec"]).items():
            found.setdefault((release.namespace, name), set()).update(named)
    if isinstance(release.rules, InjectorRules):
        certificate, binding = release.rules.secret, f"{release.rules.secret}-binding"
        for place, name in release.secrets:
            if place != release.namespace and name in {certificate, binding}:
                found[place, name] = {"binding-key"} if name == binding else {"tls.crt", "tls.key", "ca.crt"}
    return found


def namespaces(release: Installation, found: Everywhere) -> Iterator[ProbeFinding]:
    """Check what the namespaces say of the opt-in, and that those which opt in can have sidecars."""
    line = partial(ProbeFinding, "namespaces")
    if not isinstance(release.rules, InjectorRules):
        return
    if isinstance(found.namespaces, Refused):
        yield unread(line, "labels", found.namespaces)
        return
    known = labels_of(found)
    for name in sorted(release.rules.namespaces.keys() - known.keys()):
        yield line(name, WARN, "the injector has rules for it, and it is not there", "correct injector.namespaces")
    for name, labels in sorted(known.items()):
        label = labels.get(INJECT)
        if label is None or name in EXEMPT or name == release.namespace:
            continue
        if label not in YES | NO:
            yield line(name, FAIL, f"its label {INJECT} is {label!r}: it takes no pod", 'say "enabled" or "disabled"')
        else:
            yield line(name, OK, f"{INJECT}={label}")


def pods(release: Installation, found: Everywhere) -> Iterator[ProbeFinding]:
    """Name the pods that run without the sidecar that they should have, or with one of older rules."""
    line = partial(ProbeFinding, "pods")
    if not isinstance(release.rules, InjectorRules):
        if isinstance(release.rules, Refused):
            yield unread(line, "rules", release.rules)
        return
    for name, part in (("list", found.pods), ("namespaces", found.namespaces)):
        if isinstance(part, Refused):
            yield unread(line, name, part)
            return
    listed = () if isinstance(found.pods, Refused) else found.pods
    wrong = list(census(listed, labels_of(found), release.rules, exempt={release.namespace}))
    for one in wrong[:MOST_TOLD]:
        status = WARN if one.why is Why.OUTDATED else FAIL
        yield line(
            f"{one.namespace}/{one.pod}", status, f"{one.why}: {one.detail}", _pod_hint(one.why, one.namespace, one.pod)
        )
    if len(wrong) > MOST_TOLD:
        kinds = ", ".join(f"{count} {why}" for why, count in Counts(one.why for one in wrong).items())
        yield line("more", FAIL, f"{len(wrong)} pods in all: {kinds}", "create them anew: kubectl rollout restart")
    if not wrong:
        yield line("sidecars", OK, "every pod that should have a sidecar has the injector's")


def identity(release: Installation) -> Iterator[ProbeFinding]:
    """Check that policy expects the tokens that the injector gives."""
    line = partial(ProbeFinding, "pod identity")
    if not isinstance(release.rules, InjectorRules):
        return
    given = release.rules.pod_tokens.audience if release.rules.pod_tokens else ""
    policy = next(
        (one for one in release.deployments if (one["metadata"].get("labels") or {}).get(COMPONENT) == "policy"), None
    )
    expected = _variable(policy, "INTERLOCK_POD_IDENTITY_AUDIENCE") if policy else ""
    if given != expected:
        hint = "helm upgrade writes both; sidecars are refused meanwhile"
        yield line(
            "audience",
            FAIL,
            f"sidecars get tokens for {given or 'nothing'!r}, policy takes {expected or 'none'!r}",
            hint,
        )
    elif given:
        yield line("audience", OK, given)
    else:
        yield line("audience", SKIP, "callers are told apart by their keys", "sidecar.podIdentity")


def _hooks(line: Line, release: Installation, found: Sequence[Json]) -> Iterator[ProbeFinding]:
    from interlock.cli.cluster.trust import distrusted

    held = release.secrets.get((release.namespace, f"{(release.injector or {})['metadata']['name']}-tls"))
    for one in found:
        for hook in one.get("webhooks") or []:
            name = str(hook.get("name"))
            if hook.get("failurePolicy") != "Fail":
                yield line(
                    name, FAIL, "pods start without a sidecar while no injector answers", "failurePolicy has to be Fail"
                )
                continue
            client = hook.get("clientConfig") or {}
            if isinstance(held, Refused):
                yield unread(line, name, held)
            elif problem := distrusted(client, held or {}):
                yield line(
                    name,
                    FAIL,
                    problem,
                    "helm upgrade writes bundle and certificate; with cert-manager see its injector",
                )
            else:
                yield line(name, OK, "the API server trusts what the injector presents")


def _endpoints(line: Line, release: Installation) -> ProbeFinding:
    if isinstance(release.endpoints, Refused):
        return unread(line, "endpoints", release.endpoints)
    ready = [
        endpoint
        for one in release.endpoints
        for endpoint in one.get("endpoints") or []
        if (endpoint.get("conditions") or {}).get("ready", True)
    ]
    if not ready:
        return line(
            "endpoints", FAIL, "no injector answers: labelled pods are refused", "see the injector's Deployment"
        )
    if len(ready) == 1:
        return line(
            "endpoints",
            WARN,
            "one injector answers: labelled pods are refused while it is replaced",
            "injector.replicas: 2",
        )
    return line("endpoints", OK, f"{len(ready)} injectors answer")


def _alike(line: Line, name: str, said: Mapping[str, str], hint: str) -> ProbeFinding:
    kinds = Counts(said.values())
    if len(kinds) <= 1:
        return line(name, OK, next(iter(kinds), "none"))
    usual = kinds.most_common(1)[0][0]
    others = ", ".join(f"{part} has {value}" for part, value in said.items() if value != usual)
    return line(name, FAIL, f"most have {usual}, {others}", hint)


def _image(deployment: Json) -> str:
    labels = deployment["metadata"].get("labels") or {}
    if labels.get(COMPONENT) == "triton":
        return ""
    containers = deployment["spec"]["template"]["spec"].get("containers") or [{}]
    return str(containers[0].get("image") or "")


def _variable(deployment: Json, name: str) -> str:
    for container in deployment["spec"]["template"]["spec"].get("containers") or []:
        for one in container.get("env") or []:
            if one.get("name") == name:
                return str(one.get("value") or "")
    return ""


def _missing_hint(release: Installation, place: str) -> str:
    if place == release.namespace:
        return f"create it in {place}: pods that name it do not start"
    return f"add {place} to sidecar.namespaces: sidecars there do not start"


def _pod_hint(why: Why, namespace: str, pod: str) -> str:
    if why is Why.NOT_SEEN:
        return f"kubectl label namespace {namespace} {INJECT}=enabled, and create the pod anew"
    if why is Why.UNCLEAR:
        return f"kubectl label --overwrite namespace {namespace} {INJECT}=enabled"
    return f"kubectl -n {namespace} delete pod {pod}, or restart its Deployment"
