"""What a worker tells the world: JSON lines on stdout for CES, plain log lines on stderr for people."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Progress:
    """Where the training is after a round. ``step`` is the round, too: by it CES measures how fast a malleable job is.
    Seconds and bytes count from the first round on, ``seconds_round`` alone counts this round's.

    ``loss`` is the mean over all workers' batches of this round, ``accuracy`` that of the updated model on
    the held-out images; gossip learning, which waits for nobody, knows of each worker what it heard last.
    ``seconds_communicating`` includes waiting for slower peers.
    """

    round: int
    rounds: int
    step: int
    loss: float
    accuracy: float
    bytes_sent: int
    bytes_received: int
    seconds: float
    seconds_round: float
    seconds_communicating: float


@dataclass(frozen=True)
class Result:
    """How it ended. ``digest`` is the SHA-256 of the parameters: equal at all workers, save with gossip learning."""

    algorithm: str
    rank: int
    world_size: int
    rounds: int
    loss: float
    accuracy: float
    digest: str
    bytes_sent: int
    bytes_received: int
    seconds: float
    seconds_communicating: float


class Reporter:
    """Writes the lines of one worker and flushes each, so that whoever follows sees it at once."""

    def __init__(self, rank: int) -> None:
        self._rank = rank

    def progress(self, progress: Progress) -> None:
        _line({"progress": _rounded(asdict(progress))})

    def result(self, result: Result) -> None:
        _line({"result": _rounded(asdict(result))})

    def log(self, message: str) -> None:
        print(f"rank {self._rank}: {message}", file=sys.stderr, flush=True)


def _line(content: dict[str, object]) -> None:
    print(json.dumps(content, allow_nan=False), flush=True)


def _rounded(values: dict[str, object]) -> dict[str, object]:
    return {key: round(value, 4) if isinstance(value, float) else value for key, value in values.items()}
