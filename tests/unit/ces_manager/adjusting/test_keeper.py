"""When CES looks at an application by itself, and when it leaves it alone."""

from __future__ import annotations

import asyncio

from adjusting_scene import GOALS, Scene, move_to
from manager_world import World
from memory_bus import MemoryBroker, MemoryBus
from moved_tasks import apart, gone, laid, place, says, state, view

from ces_common.application import Location
from ces_common.jobfile import JobFile
from ces_common.messages.adjustments import AdjustmentAnswer
from ces_common.messages.reports import Progress
from ces_manager.adjusting.deadline_windows import WINDOW_S
from ces_manager.adjusting.keeper import LEAST_S, MOST_S, RETRY_S, TRIES
from ces_manager.jobs import commands
from ces_manager.jobs.task_moves import last_look
from ces_manager.jobs.users import move_user


async def test_a_job_is_looked_at_once_when_it_begins_and_then_not_while_nothing_changes(scene: Scene) -> None:
    job = scene.running()
    for _ in range(4):
        await scene.step(WINDOW_S)
    assert len(scene.asked) == 1
    assert scene.last(job).why == "it has begun to run, or to be followed by this manager"


async def test_a_job_whose_file_does_not_say_it_is_left_alone(scene: Scene) -> None:
    scene.running(adjust=None)
    await scene.step()
    scene.slow_down()
    await scene.step()
    assert scene.asked == []


async def test_while_a_task_moves_nothing_is_asked_and_then_its_new_place_is_news(scene: Scene) -> None:
    job = await scene.settled()
    scene.slow_down()
    scene.answers = [scene.says(move_to("c"))]
    await scene.step()
    scene.slow_down("a", "c")
    await scene.step(LEAST_S)
    assert len(scene.asked) == 1
    scene.there(job)
    await scene.step(LEAST_S)
    assert len(scene.asked) == 2
    assert "its place has changed" in scene.last(job).why
    assert scene.last(job).outcome.startswith("it stays as it is: loop: 61 ms of 50 ms; No adjustment")


async def test_an_application_is_looked_at_every_ten_seconds_at_most(scene: Scene) -> None:
    await scene.settled()
    for i in range(4):
        scene.slow_down(delay=f"{40 + i}ms")
        await scene.step(LEAST_S / 2)
    assert len(scene.asked) == 2


def progress(job: str, allocation: str, late: int, name: str = "loop") -> Progress:
    data = {"requests": {name: {"answers": 2 * late, "late": late, "lost": 0}}}
    return Progress(node="a", job=job, task="camera-0", allocation=allocation, data=data)


async def watched_camera(scene: Scene) -> tuple[str, str]:
    """A job whose camera tells of its requests, and the camera's allocation."""
    tasks = [
        {"name": "camera", "command": ["true"], "constraints": {"user": "cam"}},
        {"name": "detect", "command": ["true"], "work": {"per_request": "5ru"}},
    ]
    ends = [("camera-0", "detect-0"), ("detect-0", "camera-0")]
    edges = [{"src": src, "dst": dst, "bandwidth": {"min": "1Mbit", "max": "20Mbit"}} for src, dst in ends]
    requests = [{"name": "loop", "from": "cam", "rate": 10, "chain": ["detect", "cam"], "deadline": "500ms"}]
    file = {"name": "app", "tasks": tasks, "flows": {"edges": edges}, "requests": requests, "adjust": {}}
    file |= {"users": [{"name": "cam", "at": {"node": "a"}}], "restart": {"scope": "task"}}
    job = scene.world.submit(JobFile.model_validate(file))
    scene.world.run(job, ["a", "b"])
    await scene.step()
    scene.asked.clear()
    return job, place(scene.world, job, "camera-0").id


async def test_deadlines_missed_in_three_windows_lead_to_a_look_and_less_often_where_nothing_helps(
    scene: Scene,
) -> None:
    job, camera = await watched_camera(scene)
    looked = []
    for i in range(1, 20):
        scene.measurements.progressed(progress(job, camera, 50 * i), scene.world.now)
        await scene.step(WINDOW_S)
        looked.append(len(scene.asked))
    assert scene.last(job).why == "loop has missed its deadline in 3 windows of 10 s"
    assert looked[2] == 0
    assert looked[3] == 1, "the first window begins with the first word of it"
    assert 3 <= looked[-1] <= 5


async def test_a_worker_cannot_call_for_looks_by_names_of_its_own(scene: Scene) -> None:
    job, camera = await watched_camera(scene)
    for i in range(1, 9):
        scene.measurements.progressed(progress(job, camera, 50 * i, name="x" * 5000), scene.world.now)
        await scene.step(WINDOW_S)
    assert scene.asked == []


async def test_a_user_that_moved_before_the_job_ran_is_followed(scene: Scene) -> None:
    job = scene.world.submit(apart("app", adjust={}, users=[{"name": "cam", "at": {"node": "a"}}], **GOALS))
    scene.world.commit(scene.world.propose(job, ["a", "b"]))
    scene.world.write(lambda tx: move_user(tx, job, "cam", Location(node="c")))
    scene.world.network(job)
    scene.world.tell(job, "running")
    await scene.step()
    assert len(scene.asked) == 1


async def test_a_job_that_was_paused_is_looked_at_when_it_goes_on(scene: Scene) -> None:
    job = await scene.settled()
    scene.world.write(lambda tx: commands.pause_job(tx, job))
    await scene.step()
    scene.slow_down()
    await scene.step(LEAST_S)
    assert scene.asked == []
    scene.world.write(lambda tx: commands.resume_job(tx, job))
    await scene.step()
    assert len(scene.asked) == 1


async def test_what_the_cooldown_or_the_budget_forbids_is_looked_at_when_they_allow_it(scene: Scene) -> None:
    job = await scene.settled(adjust={"budget": 10, "cooldown": "2m"})
    scene.slow_down()
    scene.answers = [scene.says(move_to("c"))]
    await scene.step()
    scene.there(job)
    await scene.step(LEAST_S)  # its place has changed: nothing more
    count = len(scene.asked)
    await scene.step(60)
    assert len(scene.asked) == count
    await scene.step(60)
    assert len(scene.asked) == count + 1, "the cooldown is over"
    await scene.step(1800)
    assert len(scene.asked) == count + 1
    await scene.step(1800)
    assert (len(scene.asked), scene.asked[-1].past) == (count + 2, []), "the hour is over"
    await scene.step(3600)
    assert len(scene.asked) == count + 2


async def test_whoever_takes_over_looks_once(scene: Scene) -> None:
    await scene.settled()
    scene.holds = False
    scene.slow_down()
    await scene.step()
    assert scene.asked == []
    scene.holds = True
    await scene.step()
    await scene.step(LEAST_S)
    assert len(scene.asked) == 1


async def test_without_a_scheduler_it_waits(world: World) -> None:
    bus = MemoryBus(MemoryBroker())
    await bus.connect()
    scene = Scene(world, bus)
    job = scene.running()
    for n in range(TRIES + 2):
        await asyncio.wait_for(scene.step(RETRY_S * 2**n), 10)
    with world.uow.read() as tx:
        assert last_look(tx, job) is None
    await scene.open()
    await scene.step(RETRY_S * 2**TRIES)
    assert scene.last(job).outcome.startswith("it stays as it is")
    await bus.close()
    scene.database.close()


async def test_news_that_comes_while_the_scheduler_decides_calls_for_another_look(scene: Scene) -> None:
    """Also of the same words."""
    job = await scene.settled()
    scene.slow_down()

    async def meanwhile() -> None:
        scene.slow_down(delay="50ms")
        await scene.keeper.take_in()

    scene.meanwhile = meanwhile
    await scene.step()
    assert len(scene.asked) == 1
    scene.meanwhile = None
    await scene.step(LEAST_S)
    assert len(scene.asked) == 2
    assert scene.last(job).why == "link a -> b has changed; link b -> a has changed"


async def test_a_change_after_a_move_is_not_put_off_until_the_budget_is_whole(scene: Scene) -> None:
    job = await scene.settled(adjust={"budget": 10})
    scene.slow_down()
    scene.answers = [scene.says(move_to("c"))]
    await scene.step()
    scene.there(job)
    await scene.step(LEAST_S)
    count = len(scene.asked)
    for i in range(3):
        scene.slow_down("a", "c", delay=f"{10 + i}ms")
        await scene.step(LEAST_S)
    assert len(scene.asked) == count + 3


async def test_a_move_that_comes_back_does_not_call_for_itself(scene: Scene) -> None:
    job = await scene.settled()
    scene.slow_down()
    scene.answers = [scene.says(move_to("c"))]
    await scene.step()
    old = place(scene.world, job, "w-1")
    laid(scene.world, job)
    await scene.step(LEAST_S)
    gone(scene.world, old)
    await scene.step(LEAST_S)
    says(scene.world, place(scene.world, job, "w-1"), "exited")
    assert state(scene.world, job) == "returning"
    await scene.step(LEAST_S)
    says(scene.world, place(scene.world, job, "w-1"), "running")
    assert state(scene.world, job) == "kept"
    await scene.step(LEAST_S)
    await scene.step(MOST_S)
    assert len(scene.asked) == 1


async def test_what_a_scheduler_does_not_know_yet_after_an_outage_is_asked_again(world: World) -> None:
    bus = MemoryBus(MemoryBroker())
    await bus.connect()
    scene = Scene(world, bus)
    job = scene.running()
    for n in range(TRIES + 2):
        await scene.step(RETRY_S * 2**n)
    await scene.open()
    scene.answers = [AdjustmentAnswer(refusal="it does not know yet that the job runs"), scene.says(move_to("c"))]
    for _ in range(2):
        await scene.step(RETRY_S * 2**TRIES)
    assert view(world, job).destination == "c"
    await bus.close()
    scene.database.close()


async def test_a_manager_that_has_lost_the_duty_meanwhile_changes_nothing(scene: Scene) -> None:
    job = await scene.settled()
    scene.slow_down()

    async def meanwhile() -> None:
        scene.holds = False

    scene.meanwhile = meanwhile
    scene.answers = [scene.says(move_to("c"))]
    await scene.step()
    assert (len(scene.asked), scene.world.job(job).moving) == (1, None)
