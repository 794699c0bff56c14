"""Recipes for meshes and gateways: valid by the schemas of their projects, and the same, line for line, as what the real Envoy was shown with (MSH-3)."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
import yaml

from interlock.domain.headers import headers
from tests.support.paths import ROOT
from tests.support.servers.envoy import cluster, first_filter, manager, shipped

pytestmark = pytest.mark.req("MSH-3")

DEPLOY, SCHEMAS = ROOT / "deploy", ROOT / "tests" / "data" / "crds"
MARK = "x-interlock-governed"
MODELS = shipped("models")


def objects(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / name).read_text(encoding="utf-8")))


ISTIO, GATEWAY = objects("istio/models.yaml"), objects("envoy-gateway/models.yaml")
(AGENTGATEWAY,) = objects("agentgateway/config.yaml")


def of_kind(listed: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    return next(one for one in listed if one["kind"] == kind)


def patched(what: str) -> Any:
    """What the EnvoyFilter puts in for one place."""
    patches = of_kind(ISTIO, "EnvoyFilter")["spec"]["configPatches"]
    return next(one["patch"]["value"] for one in patches if one["applyTo"] == what)


@pytest.mark.parametrize("one", [*ISTIO, *GATEWAY], ids=lambda one: f"{one['kind']}-{one['metadata']['name']}")
def test_every_object_is_valid(one):
    """By the schema of its project, with unknown fields refused (scripts/take_crds.py)."""
    group, _, _ = one["apiVersion"].partition("/")
    schema = json.loads((SCHEMAS / f"{one['kind']}.{group}.json").read_text(encoding="utf-8"))

    assert schema["apiVersion"] == one["apiVersion"]
    jsonschema.Draft202012Validator(schema["spec"]).validate(one["spec"])


def test_a_field_that_does_not_exist_is_found():
    """The schemas are closed: a typing error would leave a door open without a word."""
    policy = json.loads((SCHEMAS / "EnvoyExtensionPolicy.gateway.envoyproxy.io.json").read_text(encoding="utf-8"))
    spec = of_kind(GATEWAY, "EnvoyExtensionPolicy")["spec"]
    (one,) = spec["extProc"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**spec, "extProc": [{**one, "failopen": False}]}, policy["spec"])


def test_istio_has_the_filter_that_is_shown_with_the_real_envoy():
    """The same settings, so that the tests of deploy/envoy are tests of it."""
    assert patched("HTTP_FILTER") == {"name": "envoy.filters.http.ext_proc", "typed_config": first_filter(MODELS)}


def test_istio_has_the_same_way_to_interlock():
    """The same protocol, certificates and keepalive; only its address is another."""
    ours, shown = dict(patched("CLUSTER")), dict(cluster(MODELS, "interlock"))
    for one in (ours, shown):
        del one["load_assignment"], one["type"]

    assert ours == shown


def test_istio_has_the_same_listener():
    """The mark is taken off every client's request before anything reads it; paths and headers are read in one way."""
    merged, shown = patched("NETWORK_FILTER")["typed_config"], manager(MODELS)

    assert {name: shown[name] for name in merged} == merged
    assert merged["early_header_mutation_extensions"]


def test_istio_sends_on_what_has_the_mark_and_nothing_else():
    """The first route asks for the mark, the last one has no way to a provider."""
    governed, rest = of_kind(ISTIO, "VirtualService")["spec"]["http"]

    assert governed["match"] == [{"headers": {MARK: {"exact": "1"}}}]
    assert governed["retries"] == {"attempts": 0}
    assert rest["directResponse"]["status"] == 503
    assert "route" not in rest
    assert "match" not in rest


def test_istio_takes_every_header_of_ours_off():
    """In both directions, what the shipped configuration takes off."""
    removed = of_kind(ISTIO, "VirtualService")["spec"]["http"][0]["headers"]
    (shown,) = manager(MODELS)["route_config"]["virtual_hosts"]

    assert removed["request"]["remove"] == removed["response"]["remove"] == shown["request_headers_to_remove"]


@pytest.mark.parametrize("name", ["models", "tools", "limits"])
def test_every_configuration_takes_every_header_of_ours_off(name):
    """All that the protocol has, in both directions: one that is added later has to be added there."""
    (host,) = manager(shipped(name))["route_config"]["virtual_hosts"]

    assert set(headers.KNOWN) <= set(host["request_headers_to_remove"])
    assert set(headers.KNOWN) <= set(host["response_headers_to_remove"])


def test_envoy_gateway_is_closed_and_judges_bodies_of_both_directions():
    """What is not sent is not judged; trailers come with the mode (its own documentation says so)."""
    (one,) = of_kind(GATEWAY, "EnvoyExtensionPolicy")["spec"]["extProc"]
    mode = one["processingMode"]

    assert one["failOpen"] is False
    assert one["messageTimeout"] == first_filter(MODELS)["message_timeout"]
    assert mode["request"]["body"] == mode["response"]["body"] == "FullDuplexStreamed"
    assert mode["response"]["attributes"] == first_filter(MODELS)["response_attributes"]
    assert mode["allowModeOverride"] is False


def test_envoy_gateway_sends_on_what_has_the_mark_and_nothing_else():
    """The policy is on the whole route, so that the rule without the mark is asked about too."""
    route = of_kind(GATEWAY, "HTTPRoute")
    governed, rest = route["spec"]["rules"]
    (target,) = of_kind(GATEWAY, "EnvoyExtensionPolicy")["spec"]["targetRefs"]
    early = of_kind(GATEWAY, "ClientTrafficPolicy")["spec"]["headers"]["earlyRequestHeaders"]

    assert governed["matches"] == [{"headers": [{"name": MARK, "type": "Exact", "value": "1"}]}]
    assert "backendRefs" not in rest
    assert of_kind(GATEWAY, "HTTPRouteFilter")["spec"]["directResponse"]["statusCode"] == 503
    assert (target["kind"], target["name"]) == ("HTTPRoute", route["metadata"]["name"])
    assert "sectionName" not in target
    assert early["remove"] == [MARK]


def test_envoy_gateway_takes_off_what_is_secret():
    """A route removes 16 names at most: those that carry something come first."""
    filters = of_kind(GATEWAY, "HTTPRoute")["spec"]["rules"][0]["filters"]
    removed = next(one["requestHeaderModifier"]["remove"] for one in filters if one["type"] == "RequestHeaderModifier")

    assert set(removed) <= set(headers.KNOWN)
    assert {"crp-session-token", "crp-agent-delegation-grant", "crp-oversight-token"} <= set(removed)


def test_agentgateway_denies_where_interlock_does_not_answer():
    """No schema of it is to be had as a package, so that its form is held here: each route is closed, or ends at Interlock."""
    tools, models = AGENTGATEWAY["binds"][0]["listeners"][0]["routes"]
    asked = tools["policies"]["extAuthz"]

    assert set(AGENTGATEWAY) == {"binds"}
    assert (asked["failureMode"], asked["protocol"]) == ("deny", {"grpc": {}})
    assert "crp-session-token" in tools["policies"]["requestHeaderModifier"]["remove"]
    assert models["backends"] == [{"host": "interlock.interlock.svc:7070"}]
