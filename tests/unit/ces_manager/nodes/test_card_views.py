from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from manager_world import World, sqlite_url

from ces_common.jobfile import JobFile
from ces_common.messages.cards import Card, CardHolder
from ces_common.resources import WHOLE
from ces_manager.measurements import Measurements
from ces_manager.nodes.card_views import views_of
from ces_manager.nodes.node_views import list_nodes, node_view

GIB = 2**30
CARDS = [Card(id="a", model="T4", memory=16 * GIB, shareable="counted"), Card(id="b", memory=8 * GIB)]


def test_shares_of_a_job_are_added_and_a_whole_card_counts_once() -> None:
    holdings = [
        ("j1", "one", ["a"], 250, GIB),
        ("j2", "two", ["a"], 100, 2 * GIB),
        ("j1", "one", ["a"], 250, GIB),
        ("j3", "three", ["b"], 0, 0),
        ("j3", "three", ["b"], 0, 0),  # at its next size
        ("j4", "four", ["gone"], 0, 0),
    ]
    a, b = views_of(CARDS, {"a": (600, 4 * GIB), "b": (WHOLE, 8 * GIB)}, holdings)
    assert a.holders == [
        CardHolder(job="j1", name="one", share=500, memory=2 * GIB),
        CardHolder(job="j2", name="two", share=100, memory=2 * GIB),
    ]
    assert (a.allocated, a.model, a.shareable) == (600, "T4", "counted")
    assert b.holders == [CardHolder(job="j3", name="three", share=WHOLE, memory=8 * GIB)]


@given(st.lists(st.tuples(st.sampled_from(["x", "y", "z"]), st.integers(1, 100)), max_size=9))
def test_holders_make_up_what_is_held(shares: list[tuple[str, int]]) -> None:
    holdings = [(job, job, ["a"], share, share) for job, share in shares]
    total = sum(share for _, share in shares)
    view = views_of(CARDS, {"a": (total, total)}, holdings)[0]
    assert sum(holder.share for holder in view.holders) == view.allocated == total
    assert len({holder.job for holder in view.holders}) == len(view.holders)


def test_others_jobs_are_not_named(tmp_path: Path) -> None:
    world = World(sqlite_url(tmp_path))
    world.add_nodes("n1", cards=CARDS[:1])
    for tenant in ("red", "blue"):
        task = {"name": "w", "command": ["true"], "resources": {"cpu": "100m", "memory": "64Mi", "gpu": "250m"}}
        job = world.submit(JobFile.model_validate({"name": f"of-{tenant}", "tenant": tenant, "tasks": [task]}))
        assert world.commit(world.propose(job, ["n1"])) is None
    with world.uow.read() as tx:
        whole = node_view(tx, "n1", Measurements())
        [mine] = list_nodes(tx, Measurements(), cursor=None, limit=9, tenants=["red"]).items
    assert {holder.name for holder in whole.cards[0].holders} == {"of-red", "of-blue"}
    assert [holder.name for holder in mine.cards[0].holders] == ["of-red"]
    assert mine.cards[0].allocated == whole.cards[0].allocated == 500
    world.close()
