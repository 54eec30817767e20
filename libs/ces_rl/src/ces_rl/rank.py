"""One rank of a run that a gang learns: ``python -m ces_rl.rank SPEC``, with the JSON of :meth:`ces_rl.run.Run.spec`.

Any launcher of ``torch.distributed`` may start it; ``ces train --submit`` has CES do that. Rank 0 keeps the run in the
folder that ``CES_CHECKPOINT`` names, goes on from what it finds there, and prints the updates, the progress by which
CES measures the speed, and in the end the run's files. Told to end, all ranks stop after the same update.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from ces_rl.gang import Gang, joined
from ces_rl.log import FILE as LOG
from ces_rl.parcels import send
from ces_rl.run import BEFORE, CARD, CHECKPOINTS, SPEC, Run, StoppedError, learn_along, train

FILES = (SPEC, BEFORE, LOG, *CHECKPOINTS)
"""What a run leaves beside its shipped file and the card."""
CHECKPOINT = "CES_CHECKPOINT"


def update_line(done: int, total: int, measured: dict[str, float]) -> str:
    """What is said of an update."""
    shown = " ".join(f"{what} {value:.4g}" for what, value in measured.items())
    return f"update {done}/{total}: {shown}"


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(line + "\n")  # in one piece
    sys.stdout.flush()


def _news(done: int, total: int, measured: dict[str, float]) -> None:
    say(update_line(done, total, measured))
    say(json.dumps({"progress": {"step": done, "round": done, "rounds": total}}))


def learn(spec: dict[str, Any], gang: Gang, told: list[int]) -> None:
    """This rank's part of the run. ``told``: not empty once it is to stop. Raises StoppedError, and ValueError for a
    run that cannot be."""
    folder = Path(os.environ.get(CHECKPOINT) or tempfile.mkdtemp(prefix="ces-run-")) / "run"
    run = Run.of_spec(spec, folder)
    run.algorithm.gang = gang

    def stops() -> bool:
        return gang.any(bool(told))

    if gang.rank:
        learn_along(run, stops)
        return
    known = " from its checkpoint" if run.checkpoint.exists() else ""
    say(f"{spec['algorithm']} learns {spec['env']} with {gang.size} ranks{known}")
    train(run, resume=True, news=_news, say=say, stops=stops)
    send((folder / name for name in (CARD, run.env.file, *FILES)), say)


def take_part(part: Callable[[Gang, list[int]], None]) -> None:
    """Join the gang, do a rank's part, which is given what SIGTERM puts into the list, until that is done or has
    stopped, and leave with the others."""
    told: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: told.append(number))
    gang = joined()
    try:
        part(gang, told)
    except StoppedError as error:
        say(str(error))
        gang.leave()
        sys.exit(128 + signal.SIGTERM)
    gang.leave()


if __name__ == "__main__":
    take_part(partial(learn, json.loads(sys.argv[1])))
