"""What a whole cluster knows of its links."""

from pathlib import Path

import pytest
from fault_cluster import running, star, wait_for

pytestmark = [pytest.mark.needs("root"), pytest.mark.alone]


def test_neighbours_answer_a_probe_measures_and_a_silent_one_shows(tmp_path: Path) -> None:
    with running("links", tmp_path, star(2, link="20Mbit")) as cluster:
        topology = cluster.client.topology
        wait_for(lambda: all(link.round_trip_s for link in topology.links()), "every neighbour has answered")
        assert [link.state for link in topology.links()] == ["up"] * 4
        probe = topology.probe("n1", "s1", seconds=0.5)
        assert probe.received > 0.5 * probe.bandwidth, "a busy machine may send less than there is room for"
        kept = {(link.src, link.dst): link.measured for link in topology.links()}
        assert kept == {("n1", "s1"): probe.measured, ("s1", "n1"): None, ("n2", "s1"): None, ("s1", "n2"): None}
        cluster.cluster.hosts.cut("n2", "s1")
        wait_for(lambda: {link.state for link in topology.links() if "n2" in (link.src, link.dst)} == {"down"}, "down")
        assert {link.state for link in topology.links() if "n2" not in (link.src, link.dst)} == {"up"}
