"""A request counts for the node that signed it, what it asks for, and whom it asks."""

from __future__ import annotations

import pytest

from ces_common.messages.desired import CheckpointReader
from ces_common.natsauth.keys import Kind, new_seed, public_key
from ces_edge_agent.checkpoints.signed import NODE, SIGNATURE, headers, may_fetch

SEED, DIGEST = new_seed(Kind.USER), "d" * 64


def reader(**fields: str) -> CheckpointReader:
    known = {"job": "j.2", "owner": "j", "node": "b", "address": "10.0.0.1", "key": public_key(SEED)}
    return CheckpointReader.model_validate(known | fields)


def granted(*readers: CheckpointReader, server: str = "a", job: str = "j", digest: str = DIGEST) -> bool:
    sent = headers(SEED, "b", "a", "j", DIGEST)
    return may_fetch(readers, sent[NODE], sent[SIGNATURE], server, job, digest)


def test_a_reader_may_fetch_what_it_has_signed() -> None:
    assert granted(reader(node="c"), reader())


@pytest.mark.parametrize(
    "request_", [{"server": "c"}, {"job": "k"}, {"digest": ""}, {"digest": "e" * 64}], ids=lambda each: next(iter(each))
)
def test_a_request_is_good_for_nothing_else(request_: dict[str, str]) -> None:
    assert not granted(reader(), reader(owner="k"), **request_)


@pytest.mark.parametrize("key", [public_key(new_seed(Kind.USER)), "", "no key"], ids=["other", "empty", "none"])
def test_another_key_opens_nothing(key: str) -> None:
    assert not granted(reader(key=key))


def test_only_who_goes_on_with_it_has_the_newest_packed() -> None:
    sent = headers(SEED, "b", "a", "j", "")
    for newest in (False, True):
        known = [reader().model_copy(update={"newest": newest})]
        assert may_fetch(known, sent[NODE], sent[SIGNATURE], "a", "j", "") == newest


def test_who_is_no_reader_gets_nothing() -> None:
    assert not granted()
    assert not granted(reader(owner="k"))
    assert not may_fetch([reader()], "b", "not base64!", "a", "j", DIGEST)
