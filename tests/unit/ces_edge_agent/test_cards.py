"""Which cards a machine has, and how a worker is given one of them alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from ces_common.messages.cards import Card
from ces_common.messages.desired import DesiredWorker
from ces_edge_agent import cards
from ces_edge_agent.cards import FoundCard, MachineCards, machine_cards, minors, parse_cards
from ces_edge_agent.ports import Refused, RuntimeUnavailable
from ces_edge_agent.settings import AgentSettings

TOLD = """\
1, GPU-b, Tesla P100-PCIE-16GB, 16280, 00000000:65:00.0
0, GPU-a, Tesla T4, 15360, 00000000:17:00.0
No devices were found
2, GPU-c, Orin, [N/A], 00000000:99:00.0
"""
GIB = 2**30


def worker(*ids: str, gpu: int | None = None) -> DesiredWorker:
    gpu = len(ids) if gpu is None else gpu
    known: dict[str, Any] = {"allocation": "a", "incarnation": 0, "job": "j", "job_name": "n", "task": "t", "rank": 0}
    return DesiredWorker(**known, cpu=1, memory=1, gpu=gpu, cards=list(ids))


def found(*ids: str) -> MachineCards:
    """With device files that are numbered the other way round."""
    return MachineCards([FoundCard(Card(id=each), i, len(ids) - 1 - i) for i, each in enumerate(ids)])


def test_what_the_driver_tells_becomes_cards_in_order() -> None:
    told = parse_cards(TOLD, {"0000:17:00.0": 1, "0000:65:00.0": 0})
    assert [(each.card.id, each.card.model, each.card.memory, each.index, each.minor) for each in told] == [
        ("GPU-a", "Tesla T4", 15 * GIB, 0, 1),
        ("GPU-b", "Tesla P100-PCIE-16GB", 16280 * 2**20, 1, 0),
        ("GPU-c", "Orin", 0, 2, 2),
    ]
    assert parse_cards("", {}) == []
    assert parse_cards("0, [Unknown Error], Tesla T4, 15360, 00000000:17:00.0", {}) == [], "a line that is no card"


def test_device_numbers_are_read_from_the_driver(tmp_path: Path) -> None:
    folder = tmp_path / "0000:17:00.0"
    folder.mkdir()
    (folder / "information").write_text("Model: \t Tesla T4\nGPU UUID: \t GPU-a\nDevice Minor: \t 3\n")
    assert minors(tmp_path) == {"0000:17:00.0": 3}
    assert minors(tmp_path / "none") == {}


def test_a_machine_without_driver_has_no_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert not machine_cards().found


def test_a_driver_that_fails_is_asked_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 'no devices'\nexit 9\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    machine = machine_cards()
    assert not machine.found
    with pytest.raises(RuntimeUnavailable, match="does not tell now"):
        machine.check(worker("GPU-b"))
    program.write_text(f"#!/bin/sh\n/bin/cat <<END\n{TOLD}END\n")
    machine.check(worker("GPU-b"))
    assert machine.environment(worker("GPU-b")) == {"CUDA_VISIBLE_DEVICES": "GPU-b"}
    with pytest.raises(Refused, match="card GPU-x is not in this machine"):
        machine.check(worker("GPU-x"))
    program.write_text("#!/bin/sh\nexit 9\n")
    machine.check(worker("GPU-b"))
    with pytest.raises(RuntimeUnavailable):
        machine.check(worker("GPU-x"))
    program.write_text(f"#!/bin/sh\n/bin/cat <<END\n{TOLD}END\n")
    assert [each.card.id for each in machine_cards().found] == ["GPU-a", "GPU-b", "GPU-c"]


@pytest.mark.parametrize(
    ("count", "ids"),
    [(None, ["GPU-a", "GPU-b"]), (0, []), (1, ["GPU-a"]), (3, ["GPU-a", "GPU-b", "gpu2"])],
)
def test_a_node_offers_what_is_found_or_as_many_as_it_is_told_to(count: int | None, ids: list[str]) -> None:
    assert [card.id for card in found("GPU-a", "GPU-b").offered(count)] == ids


def test_a_node_may_keep_its_cards_whole() -> None:
    machine = MachineCards([FoundCard(Card(id="GPU-a", shareable="counted"), 0, 0)])
    assert [card.shareable for card in machine.offered(None)] == ["counted"]
    assert [card.shareable for card in machine.offered(None, shares=False)] == ["no"]
    assert [card.shareable for card in machine.offered(None, kept="mps")] == ["mps"]
    assert [card.shareable for card in machine.offered(None, shares=False, kept="mps")] == ["no"]


def test_a_worker_sees_its_own_cards_and_what_stands_for_none(monkeypatch: pytest.MonkeyPatch) -> None:
    files = [f"/dev/{name}" for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "dri/renderD128")]
    monkeypatch.setattr("glob.glob", lambda pattern: [each for each in files if each.startswith(pattern[:-1])])
    machine = found("GPU-a", "GPU-b")
    shared = ["/dev/nvidia-uvm", "/dev/nvidiactl"]
    assert machine.device_files(worker("GPU-a")) == sorted([*shared, "/dev/nvidia1"])
    assert machine.device_files(worker("GPU-b")) == sorted([*shared, "/dev/nvidia0"])
    assert machine.device_files(worker("GPU-a", "GPU-b")) == sorted([*shared, "/dev/nvidia0", "/dev/nvidia1"])
    assert machine.device_files(worker()) == [], "it asks for no GPU"
    assert machine.device_files(worker(gpu=1)) == sorted(files), "a manager of before says only how many"
    assert MachineCards().device_files(worker("gpu1")) == sorted([*shared, "/dev/nvidia1"]), "without a driver's word"
    with pytest.raises(Refused, match="card gpu2 has no device file in this machine"):
        MachineCards().device_files(worker("gpu2"))
    with pytest.raises(Refused, match="card gpu2"):
        machine.device_files(worker("GPU-a", "gpu2"))
    files[:] = ["/dev/dri/renderD128", "/dev/dri/renderD129", "/dev/kfd"]
    assert MachineCards().device_files(worker("gpu1")) == files, "such files have no numbers of cards"
    files[:] = ["/dev/nvhost-gpu", "/dev/nvmap"]
    assert MachineCards().device_files(worker("gpu0")) == files, "no file stands for one card"


def test_a_card_is_seen_by_its_place_on_the_bus_too(monkeypatch: pytest.MonkeyPatch) -> None:
    files = [f"/dev/{name}" for name in ("dri/card0", "dri/card1", "nvidia0", "nvidia1")]

    def glob(pattern: str) -> list[str]:
        if pattern == "/sys/bus/pci/devices/0000:17:00.0/drm/*":
            return ["/sys/bus/pci/devices/0000:17:00.0/drm/card1"]
        return [each for each in files if each.startswith(pattern[:-1])]

    monkeypatch.setattr("glob.glob", glob)
    machine = MachineCards([FoundCard(Card(id="GPU-a"), 0, 0, "0000:17:00.0")])
    assert machine.device_files(worker("GPU-a")) == ["/dev/dri/card1", "/dev/nvidia0"]


def test_programs_are_told_of_their_cards_by_id() -> None:
    machine = found("GPU-a", "GPU-b")
    assert machine.environment(worker("GPU-b")) == {"CUDA_VISIBLE_DEVICES": "GPU-b"}
    assert machine.environment(worker("gpu0", "gpu1")) == {"CUDA_VISIBLE_DEVICES": "GPU-a,GPU-b"}, "as they were joined"
    assert MachineCards().environment(worker("gpu0")) == {}, "numbers begin anew where other cards are hidden"
    assert MachineCards().environment(worker("gpu2", "gpu0"), hidden=False) == {
        "CUDA_VISIBLE_DEVICES": "2,0",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    }
    assert machine.environment(worker("gpu1"), hidden=False) == {"CUDA_VISIBLE_DEVICES": "GPU-b"}
    assert machine.environment(worker(), hidden=False) == {}
    assert machine.environment(worker()) == {}
    assert machine.engine_ids(worker("GPU-b", "gpu0")) == ["GPU-b", "GPU-a"]
    assert MachineCards().engine_ids(worker("gpu1")) == ["1"]


def test_a_card_that_is_gone_is_told() -> None:
    machine = found("GPU-a")
    machine.check(worker("GPU-a", "gpu0"))
    with pytest.raises(Refused, match="card GPU-x is not in this machine: let its agent join again"):
        machine.check(worker("GPU-x"))


def test_fake_cards_for_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CES_GPU_FAKE", "GPU-a:T4:16Gi, GPU-b:P100:16Gi")
    settings = AgentSettings(node="a")
    assert [(each.id, each.model, each.memory) for each in settings.gpu_fake] == [
        ("GPU-a", "T4", 16 * GIB),
        ("GPU-b", "P100", 16 * GIB),
    ]
    assert [each.card for each in machine_cards(settings.gpu_fake).found] == settings.gpu_fake
    for wrong in ("GPU-a", "GPU-a:T4:much", "a b:T4:1Gi"):
        monkeypatch.setenv("CES_GPU_FAKE", wrong)
        with pytest.raises(ValidationError):
            AgentSettings(node="a")


def test_more_cards_than_a_node_may_have_are_left_out() -> None:
    lines = "\n".join(f"{i}, GPU-{i}, T4, 1024, 00000000:{i:02x}:00.0" for i in range(70))
    assert len(parse_cards(lines, {})) == cards.MAX_CARDS == 64


def test_a_share_is_told_to_the_program_and_to_what_may_keep_it_to_that() -> None:
    shared = worker("GPU-a").model_copy(update={"gpu": 0, "gpu_share": 250, "gpu_memory": 4 * GIB})
    machine = found("GPU-a", "GPU-b")
    assert machine.environment(shared) == {
        "CUDA_VISIBLE_DEVICES": "GPU-a",
        "CES_GPU_SHARE": "250m",
        "CES_GPU_MEMORY": str(4 * GIB),
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "25",
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=4096M",
        "CUDA_DEVICE_SM_LIMIT": "25",
        "CUDA_DEVICE_MEMORY_LIMIT": "4096m",
    }
    assert machine.engine_ids(shared) == ["GPU-a"]
    least = shared.model_copy(update={"gpu_share": 10, "gpu_memory": 0})
    assert machine.environment(least)["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] == "1"
    assert "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT" not in machine.environment(least), "there is nothing to keep it to"


def test_a_worker_with_a_share_sees_its_card(monkeypatch: pytest.MonkeyPatch) -> None:
    files = [f"/dev/{name}" for name in ("nvidia0", "nvidia1", "nvidiactl")]
    monkeypatch.setattr("glob.glob", lambda pattern: [each for each in files if each.startswith(pattern[:-1])])
    shared = worker("GPU-a").model_copy(update={"gpu": 0, "gpu_share": 250})
    assert found("GPU-a", "GPU-b").device_files(shared) == ["/dev/nvidia1", "/dev/nvidiactl"]
