from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from ces_common.messages.energy import MOST_WATTS, EnergyReport
from ces_common.messages.reports import Heartbeat, LinkUsage
from ces_manager import usage_history
from ces_manager.usage_history import EVERY_S, KEPT, UsageHistory

START = datetime(2026, 1, 1, tzinfo=UTC)
MEAN = timedelta(seconds=EVERY_S)


def beat(cpu: float = 0.0, **sent: float) -> Heartbeat:
    links = [LinkUsage(peer=peer, sent=rate, received=0) for peer, rate in sent.items()]
    return Heartbeat(node="n", boot="b", cpu=cpu, memory=int(cpu) * 2, links=links)


def test_means_of_what_was_reported_within_each_of_them() -> None:
    history = UsageHistory()
    for cpu, sent in ((100, 1e6), (300, 3e6)):
        history.heard(beat(cpu, a=sent), START)
    history.heard(beat(50, b=5e6), START + MEAN)
    history.heard(beat(0), START + 2 * MEAN)  # the last one is still being formed
    node, link = history.of_node("n"), history.of_link("n", "a")
    assert node.at == [START, START + MEAN]
    assert node.values == {"cpu": [200, 50], "memory": [400, 100]}
    assert (link.at, link.values) == (node.at, {"used": [2e6, None]})
    assert history.of_link("n", "b").values == {"used": [None, 5e6]}
    assert history.of_link("n", "nobody").values == history.of_node("nobody").values == {}


def test_a_node_that_was_silent_has_no_means_of_that_time() -> None:
    history = UsageHistory()
    for after in (0, 5, 6, 7):
        history.heard(beat(after), START + after * MEAN)
    assert history.of_node("n").at == [START, START + 5 * MEAN, START + 6 * MEAN]
    history.heard(beat(1), START + 3 * KEPT * MEAN)
    assert history.of_node("n").at == []  # all of it is older than an hour


def test_an_hour_is_kept_and_what_is_silent_for_longer_is_forgotten() -> None:
    history = UsageHistory()
    for after in range(2 * KEPT):
        history.heard(beat(after, a=after), START + after * MEAN)
    assert history.of_node("n").values["cpu"] == [float(cpu) for cpu in range(KEPT - 1, 2 * KEPT - 1)]
    history.forget_old(START + (2 * KEPT + 10) * MEAN)
    assert history.of_node("n").at != []
    history.forget_old(START + 3 * KEPT * MEAN)
    assert history.of_node("n").at == []


@given(st.lists(st.tuples(st.integers(0, 3), st.sets(st.sampled_from("abcdef"), max_size=4)), max_size=60))
def test_every_series_is_as_long_as_the_nodes_own(reports: list[tuple[int, set[str]]]) -> None:
    history, now = UsageHistory(), START
    for after, peers in reports:
        now += after * MEAN
        history.heard(beat(1, **dict.fromkeys(peers, 1.0)), now)
    lengths = {len(history.of_link("n", peer).values.get("used", history.of_node("n").at)) for peer in "abcdef"}
    assert lengths <= {len(history.of_node("n").at)}


def test_a_device_that_names_ever_new_neighbours_takes_no_more_memory(monkeypatch) -> None:
    monkeypatch.setattr(usage_history, "MAX_PEERS", 3)
    history = UsageHistory()
    for number in range(50):
        history.heard(beat(1, **{f"p{number}": 1.0, "true": 2.0}), START + number * MEAN)
    kept = history._nodes["n"].peers
    assert len(kept) == 3
    for number in range(KEPT + 1):
        history.heard(beat(1, true=2.0), START + (50 + number) * MEAN)
    assert kept.keys() != history._nodes["n"].peers.keys() == {"true"}


def test_power_is_there_where_it_is_told() -> None:
    history = UsageHistory()
    for watts in (10.0, 30.0, None):
        energy = EnergyReport(source="measured", total=1, watts=watts)
        history.heard(beat().model_copy(update={"energy": energy}), START)
    liar = EnergyReport(source="measured", total=1, watts=1e20)
    history.heard(beat().model_copy(update={"energy": liar}), START + MEAN)
    history.heard(beat(), START + 2 * MEAN)
    assert history.of_node("n").values["power"] == [20, MOST_WATTS]
