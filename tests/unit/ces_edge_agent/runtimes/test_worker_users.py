"""Which user a worker process runs as."""

from __future__ import annotations

from pathlib import Path

import pytest

from ces_common.service import BadSetup
from ces_edge_agent.ports import Refused
from ces_edge_agent.runtimes.worker_users import DEFAULT_UIDS, WorkerUsers, choose, parse_uids


def test_ranges_as_people_write_them() -> None:
    assert parse_uids("998") == range(998, 999)
    assert parse_uids(" 300000-300002 ") == range(300000, 300003)
    assert len(parse_uids(DEFAULT_UIDS)) == 65536


@pytest.mark.parametrize("text", ["", "ces-worker", "0", "0-10", "10-9", "1-4294967295", "-5", "1-2-3"])
def test_ranges_that_make_no_sense_or_hold_root(text: str) -> None:
    with pytest.raises(ValueError, match="must"):
        parse_uids(text)


def test_everybody_gets_an_id_of_their_own_while_there_are_any() -> None:
    uids, taken = range(500, 520), set[int]()
    for i in range(len(uids)):
        taken.add(choose(uids, f"a{i}", taken))
    assert taken == set(uids)
    assert choose(uids, "one more", taken) in uids


def test_an_id_whose_files_others_must_not_read_is_never_given_again() -> None:
    uids = range(500, 503)
    for i in range(20):
        assert choose(uids, f"a{i}", set(uids), {500, 502}) == 501
    with pytest.raises(Refused, match=r"all 3 users of CES_WORKER_UIDS .* name more there"):
        choose(uids, "a", set(), set(uids))


@pytest.mark.needs("root")
def test_users_of_checkpoints_are_only_those_of_their_jobs(tmp_path: Path) -> None:
    users = WorkerUsers(tmp_path / "work", range(300000, 300002))
    users.open()
    owner = users.give("a1", 300000, [300000])[1]
    assert (owner, users.give("a2", None, [300000])[1], users.give("a3", None, [300000])[1]) == (300000, 300001, 300001)
    with pytest.raises(Refused, match="CES_WORKER_UIDS"):
        users.give("a4", None, [300000, 300001])
    assert users.give("a5", 300001, [300000, 300001])[1] == 300001


@pytest.mark.needs("root")
def test_where_all_share_one_user_they_do_so_beside_checkpoints_too(tmp_path: Path) -> None:
    users = WorkerUsers(tmp_path / "work", range(300000, 300001))
    users.open()
    assert users.give("a1", None, [300000])[1] == 300000


@pytest.mark.needs("root")
def test_an_allocation_keeps_its_user(tmp_path: Path) -> None:
    users = WorkerUsers(tmp_path / "work", range(300000, 300100))
    users.open()
    first, other = users.give("a1"), users.give("a2")
    assert first[1] != other[1]
    again = WorkerUsers(tmp_path / "work", range(300000, 300100))
    assert again.give("a1") == first
    assert first[0].stat().st_mode & 0o777 == 0o700


@pytest.mark.needs("root")
def test_ids_that_do_not_exist_here_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: object) -> None:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr("os.chown", refuses)
    with pytest.raises(BadSetup, match=r"CES_WORKER_UIDS: 300000-300099 .*uid_map"):
        WorkerUsers(tmp_path / "work", range(300000, 300100)).open()
