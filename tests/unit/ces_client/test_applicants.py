"""Devices that have applied, through the SDK."""

from __future__ import annotations

import pytest

from ces_client.errors import ApiError
from ces_common.messages.membership import RefusedApplicants


def test_they_are_listed_and_refused(client, manager, samples):
    manager.on("GET", "applicants", [samples.applicant("roof1"), samples.applicant("roof2", "2001:db8::1")])
    assert [each.address for each in client.applicants.list()] == ["192.0.2.11", "2001:db8::1"]
    manager.on("DELETE", "applicants/roof1", RefusedApplicants(name="roof1", addresses=["192.0.2.11"]))
    assert client.applicants.refuse("roof1").addresses == ["192.0.2.11"]


def test_what_was_refused_is_not_asked_for_again(client, manager, samples):
    manager.on("DELETE", "applicants/roof1", samples.problem(503, "Busy"))
    with pytest.raises(ApiError):
        client.applicants.refuse("roof1")
    assert len(manager.requests) == 1
