"""Ranks that learn one run together: each plays and judges its share, and all take the same steps.

:class:`Gang` itself is one rank, alone. :class:`TorchGang` is a process group of ``torch.distributed``; algorithms see
no difference but its size. What is shared goes through pickle, so every rank trusts the others.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from datetime import timedelta
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from ces_core.model.problem import FloatArray
from ces_rl.needs import torch

Item = TypeVar("Item")
Found = TypeVar("Found")

PATIENCE = timedelta(hours=2)
"""For how long a rank waits for one that is busy; one that has ended is noticed at once."""
LEAVING_S: Final = 600.0
"""For how long one that is done waits for the others: the first may still measure what was learned."""
_ANSWER: Final = timedelta(seconds=10)
_LOOK_S: Final = 0.2
_START, _DONE = "ces/start", "ces/done"


class Gang:
    """One rank, alone."""

    rank, size = 0, 1
    malleable = False
    """Whether the run may go on with another number of ranks."""

    def gathered(self, mine: Found) -> list[Found]:
        """What every rank has, by rank."""
        return [mine]

    def of_first(self, what: Found) -> Found:
        """What the first rank has."""
        return what

    def total(self, numbers: Any) -> FloatArray:
        """The sum over all ranks of numbers or arrays of one shape."""
        return np.asarray(numbers, dtype=np.float64)

    def average_gradients(self, parameters: Iterable[torch.nn.Parameter], weight: float) -> None:
        """Replace each gradient by its mean over all ranks, weighted by their ``weight``."""

    def share(self, count: int) -> int:
        """How many of ``count`` things are this rank's."""
        return len(range(self.rank, count, self.size))

    def each(self, function: Callable[[Item], Found], items: Sequence[Item]) -> list[Found]:
        """The function's results, in the order of the items. Each rank works out its share, and learns the rest."""
        parts = self.gathered([function(item) for item in items[self.rank :: self.size]])
        return [parts[number % self.size][number // self.size] for number in range(len(items))]

    def any(self, said: bool) -> bool:
        """Whether any rank says so."""
        return bool(self.total(float(said)) > 0)

    def mean(self, measured: Mapping[str, float], weight: float) -> dict[str, float]:
        """Each figure's mean over all ranks, weighted by their ``weight``."""
        return dict(measured)

    def moments(self, numbers: NDArray[Any]) -> tuple[Any, Any]:
        """Mean and standard deviation of all ranks' numbers; 0 and 1 where there are none."""
        return (numbers.mean(), numbers.std()) if numbers.size else (0.0, 1.0)

    def leave(self) -> None:
        """Return when every rank has come this far: one that ended earlier would cut off what others still read."""


ALONE = Gang()


class SoleRank(Gang):
    """One rank of a run that others may take part in before or after."""

    malleable = True


class TorchGang(Gang):
    """The process group that this process has joined, and the store by which its ranks met. Raises RuntimeError where a
    rank is lost."""

    malleable = True

    def __init__(self, store: Any) -> None:
        import torch.distributed as dist

        self._dist, self.rank, self.size = dist, dist.get_rank(), dist.get_world_size()
        self.store = store

    def gathered(self, mine: Found) -> list[Found]:
        found: list[Any] = [None] * self.size
        self._dist.all_gather_object(found, mine)
        return found

    def of_first(self, what: Found) -> Found:
        found: list[Any] = [what]
        self._dist.broadcast_object_list(found, src=0)
        first: Found = found[0]
        return first

    def total(self, numbers: Any) -> FloatArray:
        summed = torch.from_numpy(np.array(numbers, dtype=np.float64))
        self._dist.all_reduce(summed)
        return np.asarray(summed.numpy())

    def mean(self, measured: Mapping[str, float], weight: float) -> dict[str, float]:
        *sums, weights = self.total([*(weight * value for value in measured.values()), weight])
        return dict(zip(measured, (float(each / weights) for each in sums), strict=True))

    def moments(self, numbers: NDArray[Any]) -> tuple[Any, Any]:
        count, total = self.total([numbers.size, numbers.sum()])
        mean = total / max(count, 1.0)
        deviation = np.sqrt(self.total(np.square(numbers - mean).sum()) / max(count, 1.0))
        return (float(mean), float(deviation)) if count else (0.0, 1.0)

    def average_gradients(self, parameters: Iterable[torch.nn.Parameter], weight: float) -> None:
        learned = [each for each in parameters if each.requires_grad]
        own = [torch.zeros_like(each) if each.grad is None else each.grad for each in learned]
        row = torch.cat([weight * each.reshape(-1) for each in own] + [torch.tensor([weight])])
        self._dist.all_reduce(row)
        mean, first = row[:-1] / row[-1].clamp(min=1.0), 0
        for each in learned:
            each.grad = mean[first : first + each.numel()].reshape(each.shape).clone()
            first += each.numel()

    def leave(self) -> None:
        done, until = [f"{_DONE}/{rank}" for rank in range(self.size)], time.monotonic() + LEAVING_S
        with suppress(RuntimeError) if self.rank else nullcontext():  # the store may end with the first rank
            self.store.set(done[self.rank], "")
            while not self.store.check(done) and time.monotonic() < until:
                time.sleep(_LOOK_S)


def joined() -> Gang:
    """The gang that a launcher of ``torch.distributed`` has made this process a rank of (``RANK``, ``WORLD_SIZE``,
    ``MASTER_ADDR``, ``MASTER_PORT``, and of one start of several the id, ``PET_RDZV_ID``); one rank where it says
    nothing. Raises RuntimeError."""
    rank, size = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        return SoleRank()
    import torch.distributed as dist

    where = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":  # torchrun listens there itself, through all starts
        start = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        store = dist.PrefixStore(f"ces/{start}", _store(*where, wait_for_workers=False))  # type: ignore[attr-defined]
    else:
        store = meeting_place(rank, *where)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size, timeout=PATIENCE)
    return TorchGang(store)


def meeting_place(rank: int, address: str, port: int) -> Any:
    """The store of the first rank of this start. That of the start before may listen at the same place until it has
    ended, and whoever met there would wait in vain. Raises RuntimeError."""
    start, until = os.environ.get("PET_RDZV_ID", ""), time.monotonic() + PATIENCE.total_seconds()
    if rank == 0:
        store = _store(address, port, is_master=True, timeout=PATIENCE, wait_for_workers=False)
        store.set(_START, start)
        return store
    while time.monotonic() < until:
        with suppress(RuntimeError):  # not there yet, or it ends just now
            store = _store(address, port, timeout=_ANSWER, wait_for_workers=False)
            if store.get(_START).decode() == start:
                store.set_timeout(PATIENCE)
                return store
        time.sleep(_LOOK_S)
    raise RuntimeError(f"the first rank of this start does not listen at {address}:{port}")


def _store(*where: Any, **how: Any) -> Any:
    from torch.distributed import TCPStore  # type: ignore[attr-defined]

    return TCPStore(*where, **how)
