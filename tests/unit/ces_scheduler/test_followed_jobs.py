"""Jobs of a kind are known from what has changed alone."""

from __future__ import annotations

from cluster_state import job, snapshot, view_of

from ces_common.messages.records import JobRecord, Snapshot
from ces_scheduler.followed_jobs import FollowedJobs


def changes(*jobs: JobRecord, version: int, removed: tuple[str, ...] = ()) -> Snapshot:
    return Snapshot(epoch="e", version=version, full=False, jobs=list(jobs), removed_jobs=list(removed))


def test_a_job_is_known_for_as_long_as_it_is_there_and_of_the_kind() -> None:
    looked: list[str] = []

    def urgent(record: JobRecord) -> bool:
        looked.append(record.id)
        return record.priority > 50

    view, followed = (
        view_of(jobs=[job("a", priority=90), job("b", priority=10), job("c", priority=90)]),
        FollowedJobs(urgent),
    )
    assert set(followed.look(view)) == {"a", "c"}
    looked.clear()
    assert set(followed.look(view)) == {"a", "c"}
    assert looked == [], "nothing has changed"
    view.merge(changes(job("a", priority=10), job("b", priority=90), version=2, removed=("c",)))
    assert set(followed.look(view)) == {"b"}
    assert sorted(looked) == ["a", "b"]
    view.merge(snapshot(jobs=[job("d", priority=90)], version=1, epoch="another"))
    assert set(followed.look(view)) == {"d"}
