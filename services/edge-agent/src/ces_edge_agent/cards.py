"""The GPU cards of this machine: which there are, and how one of them alone is given to a worker."""

from __future__ import annotations

import glob
import os
import re
import subprocess
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog
from pydantic import ValidationError

from ces_common.messages.cards import MAX_CARDS, NUMBERED, Card, cards_of
from ces_common.messages.desired import DesiredWorker
from ces_common.resources import WHOLE
from ces_edge_agent.card_sharing import Kept
from ces_edge_agent.ports import Refused, RuntimeUnavailable

log = structlog.get_logger()
PATIENCE_S: Final = 30.0  # a driver that has to load its cards takes its time
_ASKED: Final = "index,uuid,name,memory.total,pci.bus_id"
_ALL: Final = ("/dev/nvidia*", "/dev/nvhost*", "/dev/nvmap", "/dev/dri/*", "/dev/kfd")
_OF_ONE: Final = re.compile(r"/dev/(nvidia\d+|dri/.*)")
_OF_NUMBER: Final = re.compile(r"/dev/nvidia\d+")


@dataclass(frozen=True)
class FoundCard:
    """A card as the driver tells of it. ``index``: in the order of their places on the bus; ``minor``: of its device
    file; ``bus``: its place, as in /sys/bus/pci."""

    card: Card
    index: int
    minor: int
    bus: str = ""


class MachineCards:
    """``found``: what the driver tells of, in order; nothing where there is none. A card that is not among them, but
    numbered, is the one of that number. ``ask``: the driver again; it returns None where that tells nothing now."""

    def __init__(self, found: Sequence[FoundCard] = (), ask: Callable[[], Sequence[FoundCard] | None] | None = None):
        self.found = found
        self._by_id = {each.card.id: each for each in found}
        self._ask, self._asking = ask, threading.Lock()

    def offered(self, count: int | None, *, shares: bool = True, kept: Kept = "counted") -> list[Card]:
        """What the node offers. ``count``: how many it is told to; None: all that are found. ``shares``: whether
        jobs may have a part of one each, and ``kept`` what keeps them to it."""
        known = [
            each.card.model_copy(update={"shareable": kept if shares and each.card.shareable != "no" else "no"})
            for each in self.found
        ]
        if count is not None and count > len(known):
            log.warning("fewer cards are found than CES_NODE_GPU says", found=len(known), told=count)
        return cards_of(len(known) if count is None else count, known)

    def check(self, worker: DesiredWorker) -> None:
        """Asks the driver again where a card of the worker's is not known: that may take ``PATIENCE_S``. Raises Refused
        where the driver tells of cards, and not of this one, RuntimeUnavailable where it tells nothing now."""
        unknown = next((card for card in worker.cards if self._unknown(card)), None)
        if unknown is None:
            return
        with self._asking:
            told = self.found if self._ask is None else self._ask()
            if told is None:
                raise RuntimeUnavailable(f"the driver does not tell now of the machine's cards, such as {unknown}")
            self.found, self._by_id = told, {each.card.id: each for each in told}
        gone = next((card for card in worker.cards if self._unknown(card)), None)
        if gone is not None:
            raise Refused(f"card {gone} is not in this machine: let its agent join again, and it tells what is")

    def device_files(self, worker: DesiredWorker) -> list[str]:
        """The device files that the worker is to see: those of its cards, and those that stand for none. All of them
        where it is not said which cards are its, or where no file belongs to one card that has a number. Raises Refused
        where others' cards have files, and one of its cards has none."""
        if not (worker.gpu or worker.gpu_share):
            return []
        everything = sorted({path for pattern in _ALL for path in glob.glob(pattern)})
        files = {card: set(self._files_of(card)).intersection(everything) for card in worker.cards}
        own = set().union(*files.values())
        if not own and not (worker.cards and of_numbers(everything)):
            return everything
        if without := next((card for card in worker.cards if not files[card]), None):
            raise Refused(
                f"card {without} has no device file in this machine, and other cards have: its driver lost it"
            )
        return [path for path in everything if path in own or not _OF_ONE.fullmatch(path)]

    def environment(self, worker: DesiredWorker, *, hidden: bool = True) -> dict[str, str]:
        """The variables by which CUDA sees the worker's cards alone, and that say which share of a card is its. Cards
        are named by the driver's ids, else by number in the order of the bus. ``hidden``: the worker cannot see others'
        cards, so that its numbers begin at 0."""
        ids = [self._id(card) for card in worker.cards]
        seen = [each for each in ids if each is not None]
        numbers = [each[1] for card in worker.cards if (each := NUMBERED.fullmatch(card))]
        visible = {}
        if seen and len(seen) == len(ids):
            visible = {"CUDA_VISIBLE_DEVICES": ",".join(seen)}
        elif numbers and len(numbers) == len(ids) and not hidden:
            visible = {"CUDA_VISIBLE_DEVICES": ",".join(numbers), "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
        return visible | share_environment(worker)

    def engine_ids(self, worker: DesiredWorker) -> list[str]:
        """What a container engine calls the worker's cards."""
        return [self._id(card) or card.removeprefix("gpu") for card in worker.cards]

    def _unknown(self, card: str) -> bool:
        return self._found(card) is None and not NUMBERED.fullmatch(card)

    def _found(self, card: str) -> FoundCard | None:
        number = NUMBERED.fullmatch(card)
        if card in self._by_id or number is None:
            return self._by_id.get(card)
        return next((each for each in self.found if each.index == int(number[1])), None)

    def _id(self, card: str) -> str | None:
        """What the driver calls the card; None where there is none that tells."""
        found = self._found(card)
        return None if found is None else found.card.id

    def _files_of(self, card: str) -> list[str]:
        found, number = self._found(card), NUMBERED.fullmatch(card)
        if found is None:
            return [f"/dev/nvidia{number[1]}"] if number else []
        drawn = glob.glob(f"/sys/bus/pci/devices/{found.bus}/drm/*") if found.bus else []
        return [f"/dev/nvidia{found.minor}", *(f"/dev/dri/{os.path.basename(path)}" for path in drawn)]


def of_numbers(files: Sequence[str]) -> bool:
    """Whether some of the device files belong to one numbered card alone, so that others' cards can be hidden."""
    return any(_OF_NUMBER.fullmatch(path) for path in files)


def share_environment(worker: DesiredWorker) -> dict[str, str]:
    """What a worker that has a part of a card is told, in the words of MPS and HAMi-core, too, of which the agent
    starts neither. Memory in bytes, in mebibytes for these, of what is to them the first card."""
    if not worker.gpu_share:
        return {}
    percent, mebibytes = max(1, worker.gpu_share * 100 // WHOLE), worker.gpu_memory // 2**20
    told = {
        "CES_GPU_SHARE": f"{worker.gpu_share}m",
        "CES_GPU_MEMORY": str(worker.gpu_memory),
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": str(percent),
        "CUDA_DEVICE_SM_LIMIT": str(percent),
    }
    if mebibytes:
        told |= {"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": f"0={mebibytes}M", "CUDA_DEVICE_MEMORY_LIMIT": f"{mebibytes}m"}
    return told


NO_CARDS: Final = MachineCards()


def machine_cards(fake: Sequence[Card] = ()) -> MachineCards:
    """The cards of this machine. ``fake``: instead of them."""
    if fake:
        return MachineCards([FoundCard(card, i, i) for i, card in enumerate(fake)])
    return MachineCards(_ask_driver() or (), _ask_driver)


def parse_cards(told: str, minors: dict[str, int]) -> list[FoundCard]:
    """What ``nvidia-smi`` says, a card a line. ``minors``: by place on the bus; else as they are numbered. Lines that
    say something else are passed over."""
    found = []
    for line in told.splitlines():
        parts = [part.strip() for part in line.split(",")]
        if len(parts) != len(_ASKED.split(",")) or not parts[0].isdigit() or not parts[1]:
            continue
        index, uuid, model, memory, bus = parts
        size = int(memory) * 2**20 if memory.isdigit() else 0  # of integrated ones it is not known
        place = bus.lower()[-12:]  # a domain has four digits in /sys, and eight here
        try:
            card = Card(id=uuid, model=model[:63], memory=size, shareable="counted")
        except ValidationError as error:
            log.warning("a card is passed over that nvidia-smi tells of", card=uuid[:80], error=str(error))
            continue
        found.append(FoundCard(card, int(index), minors.get(place, int(index)), place))
    if len(found) > MAX_CARDS:
        log.warning("not all cards are offered", found=len(found), offered=MAX_CARDS)
    return sorted(found, key=lambda each: each.index)[:MAX_CARDS]


def minors(folder: Path = Path("/proc/driver/nvidia/gpus")) -> dict[str, int]:
    """The numbers of the cards' device files, by place on the bus, as far as the driver tells."""
    found = {}
    for file in folder.glob("*/information"):
        said = re.search(r"^Device Minor:\s*(\d+)$", _read(file), re.MULTILINE)
        if said:
            found[file.parent.name.lower()] = int(said[1])
    return found


def _read(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""


def _ask_driver() -> Sequence[FoundCard] | None:
    """None where there is no driver, or where it does not answer, which it may do later."""
    command = ["nvidia-smi", f"--query-gpu={_ASKED}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    except FileNotFoundError:
        return None
    except (OSError, subprocess.TimeoutExpired) as error:
        log.warning("nvidia-smi does not tell of cards", error=str(error))
        return None
    if done.returncode:
        log.warning("nvidia-smi does not tell of cards", error=done.stdout.strip() or done.stderr.strip())
        return None
    return parse_cards(done.stdout, minors())
