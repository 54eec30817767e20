from __future__ import annotations

from ipaddress import IPv4Network
from typing import Any

import pytest
from pydantic import ValidationError

from ces_common.messages.regions import Gateway, Summary
from ces_common.messages.split import FarEnd, NearEnd
from ces_federation.border_links import gateway_of, setups
from ces_federation.peers import Peer

BORDER = {"gateway": "gw", "there": "edge", "bandwidth": "40Mbit"}
PEER = Peer.model_validate({"token": "t" * 32, "border": BORDER})
TOLD: dict[str, Any] = {
    "gateway": "edge",
    "there": "gw",
    "subnet": "10.65.3.0/24",
    "network": "tc",
    "bandwidth": 50_000_000,
}


def summary(**gateway: Any) -> Summary:
    told = Gateway.model_validate({**TOLD, **gateway})
    return Summary.model_validate({"epoch": "e", "region": "b", "block": "10.65.0.0/16", "gateway": told})


def test_both_ends_name_the_same_two_nodes() -> None:
    [setup] = setups({"b": PEER, "c": Peer.model_validate({"token": "u" * 32})}, {"b": summary()})
    assert (setup.region, setup.gateway, setup.there, setup.bandwidth) == ("b", "gw", "edge", 40_000_000)
    assert setup.far == FarEnd(subnet=IPv4Network("10.65.3.0/24"), network="tc", bandwidth=50_000_000)


@pytest.mark.parametrize(
    "wrong",
    [{"gateway": "other"}, {"there": "other"}, {"subnet": "10.66.3.0/24"}, {"subnet": "10.65.0.0/16"}],
)
def test_an_end_that_is_told_otherwise_or_is_not_that_region_s_is_not_believed(wrong: dict[str, Any]) -> None:
    [setup] = setups({"b": PEER}, {"b": summary(**wrong)})
    assert setup.far is None


def test_a_region_that_is_silent_has_no_end_known() -> None:
    [setup] = setups({"b": PEER}, {})
    assert setup.far is None


def test_a_region_is_told_of_its_own_border_link_alone() -> None:
    near = {"b": NearEnd(region="b", subnet=IPv4Network("10.64.1.0/24"), network="tc")}
    told = gateway_of("b", PEER, near)
    assert told is not None
    assert (told.gateway, told.there, str(told.subnet), told.bandwidth) == ("gw", "edge", "10.64.1.0/24", 40_000_000)
    assert gateway_of("c", PEER, near) is None
    assert gateway_of("b", Peer.model_validate({"token": "t" * 32}), near) is None


@pytest.mark.parametrize("wrong", [{"there": "x" * 46}, {"bandwidth": 0}, {"gateway": "a b"}])
def test_a_border_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Peer.model_validate({"token": "t" * 32, "border": {**BORDER, **wrong}})
