"""What CES asks of an application that it looks at, and what it makes of the answer."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from adjusting_scene import BROKEN, Scene, both_to, move_to
from moved_tasks import gone, laid, place, says, state, view
from sqlalchemy import select

from ces_common.db.move_tables import MoveRow
from ces_common.db.tables import EventRow
from ces_common.messages.adjustments import AdjustmentAnswer, PastMove
from ces_common.messages.plans import FlowPlan
from ces_manager.adjusting.keeper import LEAST_S, RETRY_S, TRIES


async def test_a_slower_link_leads_to_a_look_and_the_look_to_a_move(scene: Scene) -> None:
    job = await scene.settled()
    scene.slow_down()
    scene.answers = [scene.says(move_to("c"))]
    await scene.step()
    assert [(query.job, query.moves) for query in scene.asked] == [(job, 3)]
    move = view(scene.world, job)
    assert (move.task, move.source, move.destination) == ("w-1", "b", "c")
    assert move.why == "link a -> b has changed; link b -> a has changed"
    moving = scene.world.job(job).moving
    assert moving is not None
    assert [(flow.src, flow.rate) for flow in moving.reserved] == [("w-0", 20_000_000), ("w-1", 20_000_000)]
    told = scene.last(job)
    assert (told.why, told.outcome, told.left) == (move.why, "w-1 moves from b to c", None)


async def test_rates_and_paths_are_set_where_that_is_all(scene: Scene) -> None:
    job = await scene.settled()
    scene.slow_down()
    flows = [{"src": "w-0", "dst": "w-1", "bandwidth": 30_000_000.7, "path": ["a", "c", "b"]}]
    flows += [{"src": "w-1", "dst": "w-0", "bandwidth": 10_000_000.9, "path": ["b", "a"]}]
    places = {"w-0": "a", "w-1": "b"}
    change = {"step": "paths", "objective": 0.7, "flows": flows, "assignments": places}
    scene.answers = [scene.says(change)]
    await scene.step()
    assert {(f.src, f.rate, tuple(f.path)) for f in scene.world.job(job).reserved} == {
        ("w-0", 30_000_000, ("a", "c", "b")),
        ("w-1", 10_000_000, ("b", "a")),
    }
    with scene.world.uow.read() as tx:
        (event,) = tx.session.scalars(select(EventRow).where(EventRow.type == "ces.v1.plan.revised"))
    assert '"cause":"goals"' in event.body
    assert scene.last(job).outcome == "1 flow gets another rate or path"
    scene.answers = [scene.says(change)]  # rates are kept in whole bit/s
    await scene.step(LEAST_S)
    assert scene.last(job).outcome == "its rates and paths are as they should be"


async def test_a_proposal_for_a_state_that_has_passed_is_asked_for_again(scene: Scene) -> None:
    job = await scene.settled()
    scene.slow_down()
    answer = scene.says(move_to("c"))
    await scene.keeper.take_in()
    held = scene.world.job(job).reserved[0]
    assert scene.world.revise(job, FlowPlan(src=held.src, dst=held.dst, rate=15_000_000, path=held.path)) is None
    scene.answers = [answer]
    await scene.keeper.look()
    assert (len(scene.asked), scene.world.job(job).moving) == (1, None)
    scene.answers = [scene.says(move_to("c"))]
    await scene.step(RETRY_S)
    assert view(scene.world, job).destination == "c"


async def test_a_scheduler_that_has_not_seen_the_change_is_asked_again(scene: Scene) -> None:
    job = await scene.settled()
    old = scene.says(None, broken=[])
    scene.slow_down()
    scene.answers = [old, scene.says(move_to("c"))]
    await scene.step()
    assert "slower" not in scene.last(job).why
    await scene.step(RETRY_S)
    assert view(scene.world, job).destination == "c"


async def test_without_room_for_the_proposed_paths_others_are_sought(scene: Scene) -> None:
    job = await scene.settled()
    scene.slow_down()
    scene.room = True
    scene.answers = [scene.says(move_to("c", rate=99_000_000))]
    await scene.step()
    moving = scene.world.job(job).moving
    assert moving is not None
    assert [flow.rate for flow in moving.reserved] == [12_000_000] * 2


async def test_what_cannot_be_made_is_tried_again_and_then_given_up(scene: Scene) -> None:
    job = await scene.settled()
    scene.slow_down()
    for n in range(TRIES):
        scene.answers = [scene.says(move_to("c", rate=99_000_000))]
        assert "no paths have room" not in scene.last(job).outcome
        await scene.step(RETRY_S * 2**n)
    assert len(scene.asked) == TRIES
    assert scene.last(job).outcome == "it stays as it is: w-1 cannot be moved to c: no paths have room"
    await scene.step(1000)
    assert len(scene.asked) == TRIES


async def test_where_nothing_is_broken_each_move_must_be_worth_it_alone(scene: Scene) -> None:
    job = await scene.settled()
    scene.slow_down()
    scene.answers = [scene.says(both_to("c"), broken=[]), scene.says(None, broken=[])]
    await scene.step()
    assert [query.moves for query in scene.asked] == [3, 1]
    assert scene.world.job(job).moving is None


async def test_of_several_moves_that_end_what_is_broken_the_first_that_can_be_is_made(scene: Scene) -> None:
    job = await scene.settled()
    scene.slow_down()
    scene.room = True
    change = both_to("c")
    change["moves"][0]["dst"] = "z"
    scene.answers = [scene.says(change)]
    await scene.step()
    assert [query.moves for query in scene.asked] == [3]
    move = view(scene.world, job)
    assert (move.task, move.destination) == ("w-0", "c")
    assert scene.last(job).outcome == "w-0 moves from a to c, the first of 2 moves"
    with scene.world.uow.read() as tx:
        (row,) = tx.session.scalars(select(MoveRow))
    assert row.requests == 2
    assert row.pays_after_s == pytest.approx(0.1 * 3600 / 0.6), "its share of the cost, of what a broken limit is worth"


@pytest.mark.parametrize(
    "answer",
    [
        AdjustmentAnswer(busy=True, refusal="another job is being looked at"),
        AdjustmentAnswer(refusal="the scheduler does not know yet that the job runs; try again"),
    ],
)
async def test_who_cannot_answer_yet_is_asked_again(scene: Scene, answer: AdjustmentAnswer) -> None:
    job = await scene.settled()
    scene.slow_down()
    scene.answers = [answer, scene.says(move_to("c"))]
    await scene.step()
    await scene.step()
    assert len(scene.asked) == 1
    await scene.step(RETRY_S)
    assert view(scene.world, job).destination == "c"


async def test_the_terms_are_those_of_the_file_and_moves_that_did_not_pay_count_double(scene: Scene) -> None:
    adjust = {"budget": 100, "reserve": 40, "cooldown": "2m", "least_gain": 0.01}
    job = await scene.settled(adjust=adjust)
    scene.slow_down()
    scene.answers = [scene.says(move_to("c", cost=0.3))]
    await scene.step()
    (first,) = scene.asked
    terms = first.terms
    assert (terms.budget, terms.reserve, terms.cooldown_s, terms.least_gain) == (100, 40, 120, 0.01)
    assert (first.past, terms.remaining_s) == ([], 3600)
    assert scene.last(job).left == 94
    old = place(scene.world, job, "w-1")
    laid(scene.world, job)
    gone(scene.world, old)
    says(scene.world, place(scene.world, job, "w-1"), "exited")  # it cannot start there, and goes back
    assert state(scene.world, job) == "returning"
    says(scene.world, place(scene.world, job, "w-1"), "running")
    assert state(scene.world, job) == "kept"
    scene.slow_down("a", "c")
    await scene.step(LEAST_S)
    assert [(past.requests, past.paid) for past in scene.asked[-1].past] == [(6, False)]
    assert view(scene.world, job).in_vain
    assert scene.last(job).left == 88


@pytest.mark.parametrize(
    ("adjust", "broken", "words"),
    [
        ({"budget": 5}, BROKEN, "6 requests would fall into the move, and 5 may this hour"),
        ({"budget": 10, "reserve": 5}, [], "6 requests would fall into the move, and 10 may this hour"),
        ({"budget": 10, "reserve": 5}, BROKEN, "w-1 moves from b to c"),
    ],
)
async def test_a_scheduler_that_knows_no_terms_is_not_obeyed_beyond_them(
    scene: Scene, adjust: dict[str, Any], broken: list[dict[str, str]], words: str
) -> None:
    job = await scene.settled(adjust=adjust)
    scene.slow_down()
    scene.answers = [scene.says(move_to("c"), broken=broken)]
    await scene.step()
    assert words in scene.last(job).outcome
    assert (scene.world.job(job).moving is not None) == words.startswith("w-1")


async def test_a_move_pays_once_its_gain_has_lasted(scene: Scene) -> None:
    job = await scene.settled()
    scene.slow_down()
    scene.answers = [scene.says(move_to("c", cost=0.1))]  # of a gain of 0.6: a sixth of an hour
    await scene.step()
    scene.there(job)
    paid: list[PastMove] = []
    for seconds in (590, 20):
        scene.slow_down("a", "c", delay=f"{seconds}us")
        await scene.step(seconds)
        paid += scene.asked[-1].past
    assert [past.paid for past in paid] == [None, True]
    move = view(scene.world, job)
    assert (move.requests, move.in_vain) == (6, False)
    assert move.pays_at == move.began_at + timedelta(seconds=600)


async def test_an_answer_that_nobody_can_read_ends_nothing(scene: Scene) -> None:
    job = await scene.settled()
    scene.slow_down()
    scene.garbled = True
    scene.answers = [scene.says(move_to("c", rate=99_000_000))]
    await scene.step()
    assert scene.world.job(job).moving is None
    scene.garbled = False
    scene.answers = [scene.says(move_to("c"))]
    await scene.step(RETRY_S)
    assert view(scene.world, job).destination == "c"
