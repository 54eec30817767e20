"""Work that a gang shares as a malleable job of a cluster (``--submit``), and its files back from there."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ces_rl.parcels import Unpacking, is_parcel
from ces_rl.run import CHECKPOINTS, RunExistsError

if TYPE_CHECKING:
    from ces_client import Client

GROUP, FIRST = "rank", "rank-0"
BANDWIDTH: Final = {"min": "1Mbit", "max": "100Mbit"}
GRACE: Final = "60s"
"""Time for the update that a resize interrupts, and a checkpoint: what CES allows at most."""
RESTARTS: Final = 5
LOOK_S: Final = 0.5
DATA: Final = "CES_DATA_DIR"
PATHS: Final = frozenset({"instances", "start_from", "topology", "trace"})
"""Settings that may name files."""


@dataclass(frozen=True)
class Workers:
    """How many ranks there may be, and what each of them takes."""

    least: int
    most: int
    cpu: str
    memory: str
    image: str

    @staticmethod
    def of(sizes: str, cpu: str, memory: str, image: str) -> Workers:
        """``sizes``: as ``1:4``, or one number. Raises ValueError."""
        low, colon, high = sizes.partition(":")
        if not low.isdecimal() or not (high.isdecimal() or not colon):
            raise ValueError(f"--workers {sizes}: say how many at least and at most, as 1:4")
        least, most = int(low), int(high or low)
        if not 1 <= least <= most:
            raise ValueError(f"--workers {sizes}: at least 1, and the second number is no smaller than the first")
        return Workers(least, most, cpu, memory, image)


def training_job(spec: Mapping[str, Any], workers: Workers) -> dict[str, Any]:
    """The job file of a run of training. Raises ValueError where it could not run on other machines, or not with so
    many ranks."""
    settings = spec["settings"]["algorithm"]
    for part in spec["settings"].values():
        refuse_files(part)
    problems = settings.get("problems", settings.get("episodes", math.inf))
    if workers.most > problems:
        raise ValueError(f"--workers: at most {problems}, the problems of an update")
    speed = {"unit": "updates", "total": settings["updates"]}
    command = ["python", "-m", "ces_rl.rank", json.dumps(spec)]
    return job_of(f"train-{spec['algorithm']}-{spec['env']}", command, workers, speed)


def refuse_files(settings: Mapping[str, Any]) -> None:
    """Raises ValueError where a setting names a file of this machine, but for those in CES_DATA_DIR."""
    data = Path(os.environ[DATA]).resolve() if DATA in os.environ else None
    for name in PATHS & settings.keys():
        value = settings[name]
        if not value or not Path(value).exists():
            continue  # a name, which the node looks up
        if data is None or not Path(value).resolve().is_relative_to(data):
            raise ValueError(f"--{name.replace('_', '-')}: {value} is here, and not on the nodes")


def job_of(name: str, command: list[str], workers: Workers, speed: Mapping[str, Any]) -> dict[str, Any]:
    """The job file of what ranks of a gang run."""
    task = {
        "name": GROUP,
        "image": workers.image,
        "command": command,
        "env": {"OMP_NUM_THREADS": "1"} | ({DATA: os.environ[DATA]} if DATA in os.environ else {}),
        "resources": {"cpu": workers.cpu, "memory": workers.memory},
    }
    return {
        "name": name,
        "tasks": [task],
        "flows": {"topology": "ring", "direction": "reverse", "bandwidth": BANDWIDTH},
        "elastic": {
            "group": GROUP,
            "workers": {"min": workers.least, "max": workers.most},
            "grace": GRACE,
            "speed": dict(speed),
        },
        "restart": {"policy": "on-failure", "max": RESTARTS},
        "disconnect": "stop",  # a rank that is cut off holds up all others
    }


def follow(client: Client, job: str, say: Callable[[str], None]) -> str:
    """Say what the first rank prints until the job is over, but for what it prints while the manager is away; returns
    the job's state then. Raises CesError."""
    from ces_client import Unreachable
    from ces_common.states import JOB_OVER

    tail = None
    while True:
        try:
            for line in client.jobs.logs(job, FIRST, follow=True, tail=tail):
                if not is_parcel(line) and not line.startswith('{"progress"'):
                    say(line)
            view = client.jobs.get(job)
            if view.state in JOB_OVER:
                return str(view.state)
        except Unreachable as error:
            say(f"the manager is away: {error}")
        tail = 0
        time.sleep(LOOK_S)


def fetch(client: Client, job: str, out: Path, *needed: str) -> dict[str, bytes]:
    """Write the files of the job's log to ``out``, and return them. Raises CesError, and ValueError, with nothing
    written, where one that is needed is not there, or the folder holds a run."""
    check_free(out)
    unpacking = Unpacking()
    for line in client.jobs.logs(job, FIRST):
        unpacking.take(line)
    if missing := [name for name in needed if name not in unpacking.files]:
        raise ValueError(f"job {job} has not sent {', '.join(missing)}: `ces logs {job}` shows how far it came")
    out.mkdir(parents=True, exist_ok=True)
    for name, content in unpacking.files.items():
        (out / name).write_bytes(content)
    return unpacking.files


def check_free(out: Path) -> None:
    """Raises RunExistsError."""
    if any((out / name).exists() for name in CHECKPOINTS):
        raise RunExistsError(f"{out} holds a run: name another folder")
