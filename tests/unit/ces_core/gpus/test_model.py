"""What tasks and nodes may say, and what is free afterwards."""

from __future__ import annotations

import pytest
from gpu_tasks import asked

from ces_core.gpus.model import MOST_MODELS, GpuNode, GpuTask, Models


@pytest.mark.parametrize(
    ("gpus", "milli", "said"),
    [(2, 500, "2 x 500 milli"), (1, 1001, "1 x 1001 milli"), (1, 0, "1 x 0 milli"), (0, 300, "300 milli of no card"),
     (17, 1000, "17 GPUs"), (-1, 1000, "-1 GPUs")],
)  # fmt: skip
def test_a_share_is_of_one_card(gpus: int, milli: int, said: str) -> None:
    with pytest.raises(ValueError, match=f"task t: {said}"):
        GpuTask("t", 1, 1, gpus, milli)


def test_numbers_below_0_are_refused() -> None:
    with pytest.raises(ValueError, match="task t: cpu, memory and card_memory"):
        GpuTask("t", -1, 1)
    with pytest.raises(ValueError, match="node n: cpu, memory and card_memory"):
        GpuNode("n", 1, -1)
    with pytest.raises(ValueError, match="node n: 17 cards"):
        GpuNode("n", 1, 1, 17)


def test_a_fleet_gives_and_takes_back() -> None:
    models = Models()
    fleet = models.fleet([GpuNode("a", 8000, 1024, 2, "T4", 16000), GpuNode("b", 4000, 512)])
    before = [part.copy() for part in fleet]
    assert fleet.milli.tolist() == [[1000, 1000], [0, 0]]
    assert fleet.model.tolist() == [models.bit("T4"), 0]
    task = asked(1000, 1, 300, memory=24, card_memory=4000)
    fleet.place(0, (1,), task)
    assert (fleet.cpu[0], fleet.memory[0], fleet.kinds[0, 0]) == (7000, 1000, 1)
    assert fleet.milli[0].tolist() == [1000, 700]
    assert fleet.card_memory[0].tolist() == [16000, 12000]
    fleet.remove(0, (1,), task)
    assert all((part == old).all() for part, old in zip(fleet, before, strict=True))


def test_models_are_bits() -> None:
    models = Models()
    assert models.bit("") == 0
    assert models.bits({"P100", "T4"}) == models.bit("T4") | models.bit("P100") == 3
    for i in range(MOST_MODELS - 2):
        models.bit(f"m{i}")
    with pytest.raises(ValueError, match="more than 62 models"):
        models.bit("one more")
