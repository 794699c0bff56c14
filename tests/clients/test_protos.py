"""The protos for toolchains that are not ours: names of packages, published descriptors, and compilers that take them."""

from __future__ import annotations

import shutil
import sys
from importlib.resources import files

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from tests.clients.toolchains import needs, run
from tests.support.paths import ROOT

pytestmark = pytest.mark.req("LNG-2")

SERVICES = {"SidecarService", "SessionService", "PolicyService", "DpeService", "AuditService", "OversightService"}


def published() -> FileDescriptorSet:
    return FileDescriptorSet.FromString(files("interlock.api").joinpath("descriptors.binpb").read_bytes())


def test_the_package_publishes_the_descriptors_of_every_service():
    """A client without a generator, or grpcurl -protoset, has all it needs, comments too."""
    ours = [one for one in published().file if one.package.startswith("interlock.api.")]

    assert SERVICES <= {service.name for one in ours for service in one.service}
    assert all(one.source_code_info.location for one in ours)


def test_every_proto_says_where_go_and_java_find_it():
    """Each package has a Go import path that ends in its version, and a Java package of its own."""
    ours = [one for one in published().file if one.package.startswith("interlock.api.")]
    service = {one.name: one.package.split(".")[2] for one in ours}

    assert ours
    for one in ours:
        name = service[one.name]
        assert f"interlock.dev/clients/go/gen/interlock/api/{name}/v1;{name}v1" == one.options.go_package
        assert f"dev.interlock.api.{name}.v1" == one.options.java_package
        assert one.options.java_multiple_files


@pytest.mark.long
@pytest.mark.timeout(600)
@needs("go")
def test_go_generates_and_compiles_every_stub(tmp_path):
    """protoc-gen-go and protoc-gen-go-grpc take the protos, and the compiler takes what they write."""
    folder = tmp_path / "go"
    shutil.copytree(ROOT / "clients" / "go", folder, ignore=shutil.ignore_patterns("gen"))
    run(sys.executable, ROOT / "scripts" / "gen_clients.py", "go", "--out", folder, cwd=ROOT)
    run("go", "build", "./...", cwd=folder)

    assert len(SERVICES) <= len(list(folder.rglob("*_grpc.pb.go")))


@pytest.mark.long
@pytest.mark.timeout(600)
@needs("mvn", "javac")
def test_java_generates_and_compiles_every_stub(tmp_path):
    """Maven's protobuf plugin takes the protos, and javac takes messages and stubs."""
    folder = tmp_path / "java"
    shutil.copytree(ROOT / "clients" / "java", folder, ignore=shutil.ignore_patterns("target"))
    run("mvn", "-q", "-B", f"-Dprotos={ROOT / 'protos'}", "compile", cwd=folder)

    assert {f"{name}Grpc.class" for name in SERVICES} <= {path.name for path in folder.rglob("*Grpc.class")}
