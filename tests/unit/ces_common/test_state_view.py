"""A reader's view: changes, merged one after the other, give what a full snapshot gives."""

import pytest
from cluster_state import job, node, snapshot, wire
from hypothesis import given
from hypothesis import strategies as st

from ces_common.messages.records import JobRecord, NodeRecord, Snapshot, Topology
from ces_common.state_view import StateView
from ces_common.states import JobState

Change = NodeRecord | JobRecord | int | str
"""A record that is new, the capacity of a wire, or the name of what is removed."""


def jobs() -> st.SearchStrategy[JobRecord]:
    """Waiting, running or over; with what is over still held by a worker or not."""
    return st.builds(
        lambda number, state, placed: job(f"j{number}", ["a", "b"] if placed else (), state=state),
        st.integers(0, 3),
        st.sampled_from(JobState),
        st.booleans(),
    )


def changes() -> st.SearchStrategy[list[list[Change]]]:
    one = st.builds(lambda number, cpu: node(f"n{number}", cpu=cpu), st.integers(0, 3), st.integers(0, 9))
    gone = st.sampled_from(["n0", "n1", "n2", "n3", "j0", "j1", "j2", "j3"])
    return st.lists(st.lists(one | jobs() | st.integers(1, 99) | gone, max_size=4), min_size=1, max_size=6)


@given(changes(), st.data())
def test_changes_add_up_to_the_whole(steps: list[list[Change]], data: st.DataObject) -> None:
    nodes: dict[str, NodeRecord] = {}
    records: dict[str, JobRecord] = {}
    topology, topology_version = Topology(), 0
    changed_at: dict[str, int] = {}
    removed_at: dict[str, int] = {}
    view = StateView()
    for version, step in enumerate(steps, 1):
        for item in step:
            if isinstance(item, NodeRecord):
                nodes[item.name] = item
                changed_at[item.name] = version
            elif isinstance(item, JobRecord):
                records[item.id] = item
                changed_at[item.id] = version
            elif isinstance(item, str):
                if nodes.pop(item, None) or records.pop(item, None):
                    removed_at[item] = version
            else:
                topology = Topology(version=version, links=wire("n0", "n1", item))
                topology_version = version
        live = [each for each in records.values() if not (each.state.value in OVER and each.released)]
        whole = Snapshot(
            epoch="e", version=version, full=True, nodes=list(nodes.values()), topology=topology, jobs=live
        )
        if data.draw(st.booleans(), label="read now"):
            query = view.query()
            if query.since == 0:
                answer = whole
            else:
                answer = Snapshot(
                    epoch="e",
                    version=version,
                    full=False,
                    nodes=[each for name, each in nodes.items() if changed_at[name] > query.since],
                    jobs=[each for name, each in records.items() if changed_at[name] > query.since],
                    topology=topology if topology_version > query.since else None,
                    removed_nodes=[name for name, at in removed_at.items() if at > query.since and name[0] == "n"],
                    removed_jobs=[name for name, at in removed_at.items() if at > query.since and name[0] == "j"],
                )
            before, marks = (dict(view.jobs), dict(view.nodes)), (view.changed_jobs.mark, view.changed_nodes.mark)
            view.merge(Snapshot.model_validate_json(answer.encode()))
            for then, now, mark, log in zip(
                before, (view.jobs, view.nodes), marks, (view.changed_jobs, view.changed_nodes), strict=True
            ):
                changed = log.since(mark)
                assert (changed is None) is answer.full
                others = (then.keys() | now.keys()) - set(changed or then.keys() | now.keys())
                assert all(now[name] is then[name] for name in others)  # type: ignore[index]
            expected = StateView()
            expected.merge(whole)
            assert all(getattr(view, name) == getattr(expected, name) for name in SEEN)


SEEN = ("epoch", "version", "nodes", "topology", "jobs")
OVER = {"succeeded", "failed", "cancelled"}


def test_a_full_snapshot_forgets_what_it_does_not_name() -> None:
    view = StateView()
    assert view.merge(snapshot([node("a"), node("b")], wire("a", "b"), [job("j", ["a"])]))
    assert view.merge(snapshot([node("c")], version=2, epoch="other"))
    assert (set(view.nodes), view.jobs, view.topology.links) == ({"c"}, {}, [])
    assert (view.epoch, view.version) == ("other", 2)


def test_changes_of_another_database_are_refused_and_change_nothing() -> None:
    view = StateView()
    view.merge(snapshot([node("a")]))
    with pytest.raises(ValueError, match="do not fit"):
        view.merge(Snapshot(epoch="other", version=9, full=False, nodes=[node("b")]))
    assert (set(view.nodes), view.version) == ({"a"}, 1)


def test_a_finished_job_stays_until_its_workers_are_gone() -> None:
    view = StateView()
    view.merge(snapshot([node("a")], jobs=[job("j", ["a"])]))
    failed = job("j", ["a"], state="failed", allocation={"state": "stopping", "stopping_since": 2})
    view.merge(Snapshot(epoch="e", version=2, full=False, jobs=[failed]))
    assert set(view.jobs) == {"j"}
    gone = job("j", ["a"], state="failed", allocation={"state": "stopped"})
    view.merge(Snapshot(epoch="e", version=3, full=False, jobs=[gone]))
    assert view.jobs == {}


def test_merge_says_whether_anything_changed() -> None:
    view = StateView()
    view.merge(snapshot([node("a")]))
    assert not view.merge(snapshot([node("a")]))
    assert not view.merge(Snapshot(epoch="e", version=5, full=False))
    assert view.version == 5
    assert view.merge(Snapshot(epoch="e", version=6, full=False, topology=Topology(version=6)))
    assert view.merge(Snapshot(epoch="e", version=7, full=False, removed_nodes=["a"]))
