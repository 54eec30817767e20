"""For how long a neighbour that tells two keys is believed to go over."""

from __future__ import annotations

from ces_edge_agent.dataplane.wireguard.keys import SETTLE_S, TRIAL_S, WAIT_S
from ces_edge_agent.dataplane.wireguard.pace import BELIEVED_S, PERIOD_S, Pace

NOW = 1_800_000_000.0


def test_it_is_believed_until_its_first_try_is_over() -> None:
    pace = Pace()
    assert pace.believed(NOW, ["n2"]) == {"n2"}
    assert pace.believed(NOW + SETTLE_S + WAIT_S + TRIAL_S, ["n2", "n3"]) == {"n2", "n3"}
    assert pace.believed(NOW + BELIEVED_S, ["n2", "n3"]) == {"n3"}
    assert pace.believed(NOW + PERIOD_S, ["n2"]) == {"n2"}, "it may try again"


def test_it_gains_nothing_by_telling_one_key_in_between() -> None:
    pace = Pace()
    believed = [
        bool(pace.believed(NOW + second, ["n2"] if second % 20 < 10 else [])) for second in range(int(PERIOD_S))
    ]
    assert 0 < sum(believed) <= BELIEVED_S


def test_a_clock_that_is_set_back_ends_nothing_for_ever() -> None:
    pace = Pace()
    pace.believed(NOW, ["n2"])
    assert pace.believed(NOW - 86400.0, ["n2"]) == {"n2"}
    assert pace.believed(NOW - 86400.0 + BELIEVED_S, ["n2"]) == frozenset()
