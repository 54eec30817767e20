from __future__ import annotations

from dataclasses import replace

from fake_kernel import take
from hypothesis import given
from hypothesis import strategies as st

from ces_edge_agent.dataplane.plan.diff import Step, diff, lowers, shortens
from ces_edge_agent.dataplane.plan.objects import (
    ROOT,
    Address,
    Device,
    Filter,
    KernelObject,
    Key,
    Queue,
    Route,
    Rule,
    ShapedClass,
    Shaper,
    Tunnel,
    WorkerEnd,
)

MATCH = frozenset({(12, 0xFF, 10)})


def shaped(device: str, minor: int, rate: int = 1000, parent: int = 0xFFFF) -> ShapedClass:
    return ShapedClass(device, minor, parent, rate, rate, 1000, 1000, 1500, 1)


DEVICE = Device("to-n2", "vxlan", 1450, tunnel=Tunnel(7, "192.0.2.2", 4789))
ENDPOINT = Device("w-1", "endpoint", 1450, mac="02:00:00:00:00:01", sandbox=3)
OBJECTS: list[KernelObject] = [
    DEVICE,
    ENDPOINT,
    Address("lo", "10.1.0.1"),
    WorkerEnd("w-1", "10.1.0.2", 1450, 65536, "02:00:00:00:00:01"),
    Route(254, "10.2.0.0/24", "to-n2", "10.2.0.1"),
    Route(254, "10.1.0.2/32", "w-1"),
    Rule(100, 77, device="w-1", source="10.1.0.2"),
    Shaper("to-n2", 0xFFFE),
    shaped("to-n2", 0xFFFF, parent=ROOT),
    shaped("to-n2", 2),
    Queue("to-n2", 2, 4000),
    Filter("to-n2", 2, 0x800, MATCH, 2, handle=0x80100001),
]


def after(steps: list[Step], observed: list[KernelObject]) -> dict[Key, KernelObject]:
    """What the kernel would have."""
    state = {item.key: item for item in observed}
    for step in steps:
        take(step, state)
    return state


def possible(chosen: set[int]) -> list[KernelObject]:
    """Without what would hang in the air."""
    keys = {OBJECTS[at].key for at in chosen} | {("device", "lo")}
    found = []
    for item in (OBJECTS[at] for at in sorted(chosen)):
        needs: list[Key] = []
        if not isinstance(item, (Device, Rule)):
            needs.append(("device", item.device))
        if isinstance(item, (ShapedClass, Queue, Filter)):
            needs.append(("shaper", item.device))
        if isinstance(item, (Queue, Filter)):
            needs.append(("class", item.device, item.minor))
        if keys >= set(needs):
            found.append(item)
    return found


SELECTION = st.sets(st.sampled_from(range(len(OBJECTS)))).map(possible)


@given(SELECTION, SELECTION)
def test_steps_lead_to_what_is_desired(desired: list[KernelObject], observed: list[KernelObject]) -> None:
    assert after(diff(desired, observed), observed) == {item.key: item for item in desired}


def test_what_is_right_is_left_alone() -> None:
    assert diff(OBJECTS, list(reversed(OBJECTS))) == []


def test_a_rate_is_changed_in_place() -> None:
    faster = shaped("to-n2", 2, rate=9000)
    desired = [faster if item.key == faster.key else item for item in OBJECTS]
    assert diff(desired, OBJECTS) == [Step("change", faster)]


def test_room_is_made_before_it_is_given_away() -> None:
    """A queue is shortened before its class is lowered, and that comes before another is raised."""
    before = [*OBJECTS, shaped("to-n2", 4), Queue("to-n2", 4, 4000)]
    change: dict[Key, KernelObject] = {
        item.key: item
        for item in (
            shaped("to-n2", 2, rate=9000),
            Queue("to-n2", 2, 36000),
            shaped("to-n2", 4, rate=500),
            Queue("to-n2", 4, 2000),
        )
    }
    steps = diff([change.get(item.key, item) for item in before], before)
    assert [step.item for step in steps] == [
        change["queue", "to-n2", 4],
        change["class", "to-n2", 4],
        change["class", "to-n2", 2],
        change["queue", "to-n2", 2],
    ]
    assert [shortens(step) is not None for step in steps] == [True, False, False, False]
    assert [lowers(step) is not None for step in steps] == [False, True, False, False]
    less = replace(shaped("to-n2", 4), ceil=999)
    assert lowers(Step("change", less, shaped("to-n2", 4))) == less
    assert lowers(Step("add", less)) is None


def test_what_hangs_on_a_device_comes_again_with_it() -> None:
    moved = replace(DEVICE, tunnel=Tunnel(7, "192.0.2.9", 4789))
    desired = [moved if item.key == moved.key else item for item in OBJECTS]
    steps = diff(desired, OBJECTS)
    assert steps[0] == Step("remake", moved)
    again = {step.item.key for step in steps[1:]}
    assert again == {item.key for item in OBJECTS if getattr(item, "device", "") == "to-n2"}
    assert {step.action for step in steps[1:]} == {"add"}


def test_a_foreign_shaper_is_replaced() -> None:
    steps = diff(OBJECTS, [Shaper("to-n2", -1) if isinstance(item, Shaper) else item for item in OBJECTS[:8]])
    assert [step.action for step in steps] == ["remake", "add", "add", "add", "add"]


def test_new_comes_before_old_goes() -> None:
    old, new = Rule(300, 7, source="10.1.0.2"), Rule(300, 8, source="10.1.0.2")
    assert diff([new], [old]) == [Step("add", new), Step("delete", old)]


def test_a_way_comes_after_the_class_of_its_traffic_and_goes_before_it() -> None:
    ways = (Route, Rule)
    classes = (Shaper, ShapedClass, Queue, Filter)
    added = [type(step.item) for step in diff(OBJECTS, [])]
    kept = [item for item in OBJECTS if isinstance(item, Device)]
    gone = [type(step.item) for step in diff(kept, OBJECTS)]
    assert max(added.index(kind) for kind in classes) < min(added.index(kind) for kind in ways)
    assert max(at for at, kind in enumerate(gone) if kind in ways) < gone.index(Shaper)


def test_a_filter_moves_to_another_class_under_its_handle() -> None:
    old = Filter("to-n2", 2, 0x800, MATCH, 2, handle=0x80100009)
    (step,) = diff([replace(old, minor=4, handle=0)], [old])
    assert step.action == "change"
    assert isinstance(step.item, Filter)
    assert (step.item.minor, step.item.handle) == (4, 0x80100009)


def test_new_filters_get_free_numbers_and_doubles_go() -> None:
    double = Filter("to-n2", 2, 0x800, MATCH, 2, handle=0x80100002)
    first = replace(double, handle=0x80100001)
    new = [Filter("to-n2", 2, 0x800, frozenset({(12, 0xFF, value)}), 4) for value in (1, 2)]
    steps = diff([first, *new], [first, double])
    handles = [(step.action, step.item.handle) for step in steps if isinstance(step.item, Filter)]
    assert handles == [("add", 3), ("add", 4), ("delete", 0x80100002)]


def test_what_goes_along_is_not_deleted_twice() -> None:
    steps = diff([], OBJECTS)
    assert {str(step) for step in steps} == {
        "delete rule 100 for 10.1.0.2 to any",
        "delete address 10.1.0.1 on lo",
        "delete device w-1",
        "delete device to-n2",
    }


def test_a_cable_that_nothing_uses_stays_but_bare() -> None:
    cable = Device("to-n3", "link", 1500)
    assert [str(step) for step in diff([], [cable, Shaper("to-n3", 0xFFFE), shaped("to-n3", 2)])] == [
        str(Step("delete", Shaper("to-n3", 0xFFFE)))
    ]
