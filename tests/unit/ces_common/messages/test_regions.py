"""What a region may say of a job, whoever holds it: nothing that spoils what is done with other regions' words."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from ces_common.messages.regions import BidAnswer, FateAnswer, Hold, RemoteJob, RemoteStatus
from ces_common.states import JobState

REMOTE = "01J0000000000000000REMOTE1"


@pytest.mark.parametrize(
    ("field", "told"),
    [
        ("started_at", "2026-11-27T10:00:00"),  # of no time zone: it cannot be compared with ours
        ("finished_at", "2026-11-27T10:00:00"),
        ("state", "run\0ning"),
        ("state", "on fire"),
    ],
)
def test_a_status_that_the_home_could_not_write_down_is_no_status(field: str, told: str) -> None:
    with pytest.raises(ValidationError, match=field):
        RemoteStatus.model_validate({"state": "running", field: told})


@pytest.mark.parametrize("state", JobState)
def test_every_state_of_a_job_is_one(state: JobState) -> None:
    told = RemoteStatus(state=state, started_at="2026-11-27T10:00:00Z")  # type: ignore[arg-type]
    assert RemoteStatus.model_validate_json(told.encode()) == told


@pytest.mark.parametrize("remote", ["", "r" * 128, REMOTE[:-1] + "\0", REMOTE + "\n", REMOTE + "1", REMOTE[:-1] + "-"])
def test_a_job_elsewhere_has_an_id_as_all_jobs_have(remote: str) -> None:
    for model, more in ((FateAnswer, {"fate": "held"}), (RemoteJob, {"job": "job-1", "attempt": 1})):
        assert model.model_validate({**more, "remote": REMOTE})
        with pytest.raises(ValidationError, match="remote"):
            model.model_validate({**more, "remote": remote})


@pytest.mark.parametrize("job", ["", "j\0b", "j" * 129])
def test_a_home_names_its_jobs_by_what_can_be_written_down(job: str) -> None:
    with pytest.raises(ValidationError, match="job"):
        RemoteJob.model_validate({"job": job, "attempt": 1, "remote": REMOTE})
    file = {"name": "x", "tasks": [{"name": "w", "command": ["true"]}]}
    with pytest.raises(ValidationError, match="job"):
        Hold.model_validate({"job": job, "attempt": 1, "file": file})


@pytest.mark.parametrize("composite", [-0.1, 1.1, 1e24])
def test_no_bid_is_better_than_perfect(composite: float) -> None:
    with pytest.raises(ValidationError, match="composite"):
        BidAnswer(feasible=True, composite=composite)
