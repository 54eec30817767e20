"""What a job file asks of GPU cards."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from ces_common.jobfile import JobFile, Task
from ces_common.messages.cards import Card, cards_of, held_of, is_model

GIB = 2**30


def job(*gpus: object, models: list[str] | None = None, **more: Any) -> JobFile:
    """A group of tasks for each."""
    constraints = {} if models is None else {"gpu_model": models}
    tasks = [
        {"name": f"w{i}", "command": ["x"], "resources": {"gpu": gpu}, "constraints": constraints}
        for i, gpu in enumerate(gpus)
    ]
    return JobFile.model_validate({"name": "j", "tasks": tasks, **more})


def asked(task: Task) -> tuple[int, int, int, float]:
    return task.gpu, task.gpu_share, task.gpu_memory, task.gpus


@pytest.mark.parametrize(
    ("gpu", "expected"),
    [
        (0, (0, 0, 0, 0.0)),
        (2, (2, 0, 0, 2.0)),
        ("500m", (0, 500, 0, 0.5)),
        ("1000m", (0, 1000, 0, 1.0)),
        ({"share": "250m"}, (0, 250, 0, 0.25)),
        ({"share": "250m", "memory": "6Gi"}, (0, 250, 6 * GIB, 0.25)),
    ],
)
def test_whole_cards_or_a_share_of_one(gpu: object, expected: tuple[int, int, int, float]) -> None:
    file = job(gpu)
    assert asked(file.expand_tasks()[0]) == expected
    assert JobFile.model_validate_json(file.model_dump_json()) == file, "as it is stored"


@pytest.mark.parametrize(
    ("gpu", "why"),
    [
        (1.5, r"1.5 cards cannot be given: ask for whole cards \(gpu: 1\), or for one share of one card \(gpu: 500m\)"),
        ("0.5", "0.5 cards cannot be given: ask for whole cards"),
        ("1500m", "1500m is more than one card, and a share is of one: ask for whole cards"),
        ("505m", "505m is not in steps of 10m, from 10m to 1000m"),
        ("0m", "0m is not in steps"),
        ("-10m", "is no share of a card"),
        ({"share": 500}, "500 is no share of a card: write 500m"),
        ({"share": "500m", "memory": 0}, "memory: .*must be more than zero"),
        ({"share": "500m", "cards": 1}, "cards: unknown field; remove it"),
        ({"memory": "1Gi"}, "share: is missing; add it"),
        (65, "must be at most 64"),
        (-1, "must be at least 0"),
        ("some", "must be a whole number"),
    ],
)
def test_what_cannot_be_given_names_the_remedy(gpu: object, why: str) -> None:
    with pytest.raises(ValidationError, match=why) as error:
        job(gpu)
    assert error.value.errors()[0]["loc"][:4] == ("tasks", 0, "resources", "gpu")


def test_tasks_of_a_job_that_ask_for_shares_or_models_ask_alike() -> None:
    assert len(job("500m", "500m", 0).expand_tasks()) == 3
    assert len(job(1, 2, 0).expand_tasks()) == 3
    assert len(job(1, 2, models=["T4", "P100"]).expand_tasks()) == 2
    for gpus in (("500m", "400m"), ("500m", 1), ("500m", {"share": "500m", "memory": "1Gi"})):
        with pytest.raises(ValidationError, match="w0 and w1 ask for different shares, memories or models of cards"):
            job(*gpus)
    with pytest.raises(ValidationError, match="w0 names a gpu_model and asks for no GPU"):
        job(0, models=["T4"])


def test_malleable_jobs_ask_for_whole_cards() -> None:
    group = {"name": "w", "command": ["x"], "resources": {"gpu": 1}}
    whole = {"name": "j", "tasks": [group], "elastic": {"group": "w", "sizes": [1, 2]}}
    assert JobFile.model_validate(whole).expand_tasks()[0].gpu == 1
    with pytest.raises(ValidationError, match="w of a malleable job may ask for whole GPUs of any model only"):
        JobFile.model_validate(whole | {"tasks": [group | {"resources": {"gpu": "500m"}}]})


@pytest.mark.parametrize(
    ("model", "asked", "is_one"),
    [
        ("Tesla T4", ["T4"], True),
        ("Tesla T4", ["t4", "P100"], True),
        ("Tesla T4", ["Tesla T4"], True),
        ("Tesla P100-PCIE-16GB", ["P100"], True),
        ("NVIDIA A100", ["A10"], False),
        ("", ["T4"], False),
        ("Tesla T4", [], True),
    ],
)
def test_models_are_words_of_what_the_driver_calls_a_card(model: str, asked: list[str], is_one: bool) -> None:
    assert is_model(Card(id="x", model=model), asked) is is_one


def test_what_is_held_of_a_card() -> None:
    card = Card(id="x", memory=16 * GIB)
    assert held_of(card, 0, 0) == (1000, 16 * GIB)
    assert held_of(card, 250, 0) == (250, 4 * GIB)
    assert held_of(card, 250, 6 * GIB) == (250, 6 * GIB)


def test_cards_without_a_name_are_numbered() -> None:
    assert [card.id for card in cards_of(3, [Card(id="GPU-a")])] == ["GPU-a", "gpu1", "gpu2"]


@pytest.mark.parametrize(
    "known", [["gpu1"], ["gpu2", "gpu0"], ["GPU-a", "gpu3", "gpu2"], ["gpu0", "gpu1", "gpu2", "gpu3"]]
)
@pytest.mark.parametrize("count", range(6))
def test_no_number_is_given_to_two_cards(known: list[str], count: int) -> None:
    ids = [card.id for card in cards_of(count, [Card(id=each) for each in known])]
    assert ids[: len(known)] == known[:count]
    assert len(set(ids)) == len(ids) == count
