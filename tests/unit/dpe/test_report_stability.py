"""A report of what is no fan-in: the bytes that are hashed and sealed stay what they were (SPEC-005 §15.2, DPE-20)."""

from __future__ import annotations

import json

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.json_format import Parse

from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.dpe.quality.cross_agent import CrossAgent
from interlock.dpe.request import LinkedResult
from tests.support.paths import TESTS
from tests.support.texts.reports import as_sealed, sample

GOLDEN = TESTS / "data" / "reports" / "no_fan_in.json"


@pytest.mark.req("DPE-20", "DPE-19")
def test_a_report_without_merged_answers_is_byte_for_byte_what_it_was():
    """Written by the report of the release before fan-ins; a report that changes is one that no longer verifies.

    What it rests on is said since then, in fields of their own.
    """
    now = json.loads(as_sealed(sample()))
    said_since = {name: now.pop(name) for name in ("basis", "grounding_mode", "meaning")}

    assert (
        now.pop("eu_ai_act_class") == "UNKNOWN"
    )  # LIMITED until a system that nobody registered was told apart (F-17)
    assert now == {name: value for name, value in json.loads(GOLDEN.read_text()).items() if name != "eu_ai_act_class"}
    assert said_since["basis"] == "sources"


@pytest.mark.req("DPE-20")
def test_what_a_fan_in_adds_is_absent_without_one():
    """No empty message and no empty list."""
    assert {"cross_agent", "linked_results"}.isdisjoint(json.loads(as_sealed(sample())))


@pytest.mark.req("DPE-20")
def test_an_old_report_is_read():
    """The bytes of before are a report of today, and are written again as they were."""
    read = Parse(GOLDEN.read_text(), dpe_pb2.Report())

    assert as_sealed(read) == GOLDEN.read_text().rstrip("\n")
    assert not read.HasField("cross_agent")


@pytest.mark.req("DPE-20")
def test_an_old_reader_reads_a_new_report_and_loses_nothing():
    """A service of the release before, whose Report ends at field 55, passes on what it does not know."""
    old = descriptor_pb2.FileDescriptorProto()
    dpe_pb2.DESCRIPTOR.CopyToProto(old)
    [message] = [each for each in old.message_type if each.name == "Report"]
    kept = [field for field in message.field if field.number <= 55]
    del message.field[:]
    message.field.extend(kept)
    del message.oneof_decl[sum(field.proto3_optional for field in kept) :]
    pool = descriptor_pool.DescriptorPool()
    common = descriptor_pb2.FileDescriptorProto()
    common_pb2.DESCRIPTOR.CopyToProto(common)
    pool.Add(common)
    pool.Add(old)
    reader = message_factory.GetMessageClass(pool.FindMessageTypeByName("interlock.api.dpe.v1.Report"))
    linked = LinkedResult("crp_sess_" + "a" * 26, "crp_win_" + "b" * 26, "sha256:" + "1" * 64, "sha256:" + "2" * 64)
    new = sample(linked, crossed=CrossAgent(2, (), (), 0.5, None))

    read = reader.FromString(new.SerializeToString())

    assert read.composite_score == new.composite_score
    assert dpe_pb2.Report.FromString(read.SerializeToString()) == new
