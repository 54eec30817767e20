"""What is said of GPU cards: never more than is so."""

from __future__ import annotations

import pytest

from ces_client.view.cards import card_text, task_cards
from ces_common.messages.api import TaskView
from ces_common.messages.cards import CardView

GIB = 2**30


@pytest.mark.parametrize(
    ("card", "text"),
    [
        (CardView(id="gpu0"), "gpu0: free"),
        (CardView(id="GPU-1", model="Tesla T4", memory=16 * GIB), "GPU-1 (Tesla T4, 16 GiB): free"),
        (CardView(id="gpu0", allocated=1000), "gpu0: held"),
        (
            CardView(id="GPU-1", model="T4", memory=16 * GIB, allocated=600, memory_allocated=9 * GIB),
            "GPU-1 (T4, 16 GiB): 600m held, with 9 GiB",
        ),
    ],
)
def test_a_card(card: CardView, text: str) -> None:
    assert card_text(card) == text


def test_the_cards_of_tasks() -> None:
    def task(name: str, **more: object) -> TaskView:
        return TaskView.model_validate({"name": name, "rank": 0, "cpu": 1, "memory": 1} | more)

    tasks = [task("a"), task("b", gpu=2, cards=["x", "y"]), task("c", gpu_share=500, cards=["x"])]
    tasks += [task("d", gpu_share=500, cards=["y"], gpu_sharing="co-operative")]
    assert task_cards(tasks) == [
        "b: x, y",
        "c: 500m of x (counted: the program is told, and nothing keeps it to that)",
        "d: 500m of y (co-operative: the node has MPS or HAMi-core, "
        "which keeps a program to it that does not evade it)",
    ]
