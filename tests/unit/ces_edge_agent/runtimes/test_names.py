"""Names and addresses that must not lead anywhere else."""

from __future__ import annotations

import pytest

from ces_common.messages.desired import Endpoint
from ces_edge_agent.ports import Refused
from ces_edge_agent.runtimes.names import check_name, hosts_file


@pytest.mark.parametrize("name", ["", "..", "../x", "a/b", "-x", "a" * 200, "a\n"])
def test_names_that_would_leave_their_folder_are_refused(name: str) -> None:
    with pytest.raises(Refused, match="cannot name an allocation"):
        check_name(name)


def endpoint(**hosts: str) -> Endpoint:
    return Endpoint(allocation="a1", job="j.1", address="10.9.0.2", hostname="t0", hosts=hosts)


def test_hosts_file_has_localhost_and_every_peer() -> None:
    assert hosts_file(endpoint(t1="10.9.1.2", t0="10.9.0.2")).splitlines() == [
        "127.0.0.1\tlocalhost",
        "::1\tlocalhost",
        "10.9.0.2\tt0",
        "10.9.1.2\tt1",
    ]


@pytest.mark.parametrize("hosts", [{"t1": "10.9.1.2\n6.6.6.6 bank"}, {"t1 bank": "10.9.1.2"}, {"t1": "nowhere"}])
def test_hosts_that_are_none_are_refused(hosts: dict[str, str]) -> None:
    with pytest.raises(Refused):
        hosts_file(endpoint(**hosts))
