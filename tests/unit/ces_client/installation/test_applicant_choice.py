"""Which of those who have applied is meant, and where ssh finds it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ces_client.errors import BadInput
from ces_client.installation.applicant_choice import chosen, destination
from ces_client.installation.ssh import checked_destination
from ces_common.messages.membership import Applicant

NOW = datetime(2026, 1, 1, 9, 0, tzinfo=UTC)


def applicant(name="roof1", address="192.0.2.11", **more):
    told = {"host_keys": ["SHA256:" + "A" * 43], "user": "root", "port": 22, "applied_at": NOW, "ends_at": NOW}
    return Applicant(name=name, address=address, **(told | more))


def test_the_only_one_of_a_name_is_meant():
    others = [applicant("roof2"), applicant("roof3")]
    assert chosen([*others, applicant()], "roof1", None) == applicant()
    assert chosen([*others, applicant()], "roof1", "192.0.2.11") == applicant()


def test_of_several_one_has_to_be_named():
    both = [applicant(), applicant(address="192.0.2.66")]
    with pytest.raises(BadInput, match="2 devices have applied as roof1") as refused:
        chosen(both, "roof1", None)
    assert "192.0.2.11, 192.0.2.66" in refused.value.problem.errors[0]["remedy"]
    assert chosen(both, "roof1", "192.0.2.66") == both[1]


@pytest.mark.parametrize(
    ("known", "address", "remedy"),
    [
        ([], None, "no device has"),
        ([applicant("roof2")], None, "these have: roof2"),
        ([applicant()], "192.0.2.66", "it was 192.0.2.11"),
    ],
)
def test_none_of_the_name(known, address, remedy):
    with pytest.raises(BadInput) as refused:
        chosen(known, "roof1", address)
    assert remedy in refused.value.problem.errors[0]["remedy"]


@pytest.mark.parametrize(
    ("address", "host"),
    [("192.0.2.11", "192.0.2.11"), ("2001:db8::1", "[2001:db8::1]"), ("::ffff:192.0.2.11", "192.0.2.11")],
)
def test_where_ssh_finds_it(address, host):
    found = destination(applicant(address=address, user="pi", port=2222))
    assert found == f"ssh://pi@{host}:2222"
    assert checked_destination(found, "x") == found


@pytest.mark.parametrize("address", ["", "-oProxyCommand=id", "roof.example"])
def test_what_is_no_address_is_not_gone_to(address):
    with pytest.raises(BadInput, match="has applied from"):
        destination(applicant(address=address))
