"""How a waiting job's place in the queue reads."""

from __future__ import annotations

import pytest
from client_views import ANNA, BERT, NARROW, NOW, SOON, queue_status

from ces_client.view.queue_status import job_list, start_text, waiting_text
from ces_common.messages.events import JobName, Reason, TooFewNodes

ONE_OF_FOUR = TooFewNodes(each={"cpu": 900}, needed=4, available=1, nodes=1, apart=True)


@pytest.mark.parametrize(
    ("reason", "told", "said"),
    [
        (
            NARROW,
            {"holders": [BERT], "start_at": SOON},
            "waits for 12 Mbit/s on n3 -> n5, held by job bert until about 14:02",
        ),
        (
            NARROW,
            {"holders": [ANNA, BERT], "start_at": SOON, "reserved": True, "overdue": True},
            "waits for 12 Mbit/s on n3 -> n5, held by jobs anna and bert. "
            "It has a reservation: it starts no later than 14:02",
        ),
        (NARROW, {"holders": [BERT]}, "waits for 12 Mbit/s on n3 -> n5, held by job bert"),
        (NARROW, {"start_at": NOW}, "waits for 12 Mbit/s on n3 -> n5"),
        (NARROW, {"reserved": True}, "waits for 12 Mbit/s on n3 -> n5. It has a reservation"),
        (
            Reason(code="cpu-per-node", text="t", resource="cpu", needed=4000),
            {"overdue": True},
            "waits for 4 cores on one node. It is overdue: the oldest overdue job goes first",
        ),
        (Reason(code="memory-total", text="t", resource="memory", needed=2**31), {}, "waits for 2 GiB"),
        (Reason(code="gpu-total", text="t", resource="gpu", needed=3), {}, "waits for 3 GPUs"),
        (
            Reason(code="quota", text="t", resource="cpu", needed=1500, where="vision"),
            {},
            "waits for 1.5 cores within the quota of tenant vision",
        ),
        (
            Reason(code="packing", text="the tasks do not fit on the nodes together"),
            {"holders": [BERT], "start_at": SOON},
            "waits: the tasks do not fit on the nodes together, held by job bert until about 14:02",
        ),
        (
            Reason(code="cpu-total", text="t", resource="cpu", needed=3600, nodes=ONE_OF_FOUR),
            {"holders": [BERT], "start_at": SOON},
            "waits for 4 nodes with 0.9 cores free (1 has that), held by job bert until about 14:02",
        ),
        (
            Reason(code="packing", text="t", nodes=ONE_OF_FOUR.model_copy(update={"available": 2, "nodes": 2})),
            {},
            "waits for 4 nodes with 0.9 cores free (2 have that)",
        ),
        (
            Reason(
                code="no-node-fits",
                text="t",
                nodes=TooFewNodes(each={"cpu": 900, "memory": 2**30}, needed=1, available=0, nodes=0, apart=True),
            ),
            {},
            "waits for 1 node with 0.9 cores and 1 GiB free (none has that)",
        ),
        (
            Reason(code="packing", text="t", nodes=ONE_OF_FOUR.model_copy(update={"apart": False})),
            {},
            "waits for 4 times 0.9 cores, each on one node (free once)",
        ),
        (
            Reason(
                code="packing",
                text="t",
                nodes=ONE_OF_FOUR.model_copy(update={"apart": False, "available": 3, "nodes": 2}),
            ),
            {},
            "waits for 4 times 0.9 cores, each on one node (free 3 times)",
        ),
        (
            Reason(code="packing", text="4 nodes are needed", nodes=ONE_OF_FOUR, forever=True),
            {},
            "waits: 4 nodes are needed; no job's end can change that, only other nodes or links, or another job",
        ),
        (None, {}, "waits for its turn: others come first"),
        (
            Reason(code="cpu-total", text="the tasks need 9 cores", resource="cpu", needed=9000, forever=True),
            {},
            "waits: the tasks need 9 cores; no job's end can change that, only other nodes or links, or another job",
        ),
    ],
)
def test_a_sentence_says_what_it_waits_for_who_holds_it_and_until_when(reason, told, said):
    assert waiting_text(reason, queue_status(**told), NOW).plain == said


def test_without_a_queue_status_the_reason_speaks_for_itself():
    assert waiting_text(NARROW, None, NOW).plain == f"waits: {NARROW.text}"


def test_many_holders_are_counted():
    jobs = [JobName(id=str(i), name=f"j{i}") for i in range(6)]
    assert job_list(jobs[:1]) == "job j0"
    assert job_list(jobs[:3]) == "jobs j0, j1 and j2"
    assert job_list(jobs) == "jobs j0, j1, j2 and 3 more"


def test_when_a_job_is_expected_to_start():
    assert start_text(queue_status(start_at=SOON), NOW) == "about 14:02"
    assert start_text(queue_status(start_at=SOON, reserved=True), NOW) == "no later than 14:02"
    assert start_text(queue_status(start_at=NOW), NOW) == "–", "others may come before"
    assert start_text(queue_status(), NOW) == start_text(None, NOW) == "–"
