"""One rank of an experiment that a gang works out: ``python -m ces_experiments.rank NAME VALUES``, options as JSON.

Any launcher of ``torch.distributed`` may start it; ``ces bench NAME --submit`` has CES do that. Rank 0 keeps what is
done in the folder that ``CES_CHECKPOINT`` names, and prints the tables, and in the end the files.
"""

from __future__ import annotations

import io
import json
import os
import sys
import tempfile
from contextlib import redirect_stdout
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from ces_experiments.common.cells import Sharing, shared
from ces_rl.gang import Gang
from ces_rl.parcels import send
from ces_rl.rank import CHECKPOINT, say, take_part
from ces_rl.run import StoppedError

GROUP, RESULTS = "ces.bench", "results.json"


def work_out(name: str, values: dict[str, Any], gang: Gang, told: list[int]) -> None:
    """This rank's part of the experiment. ``told``: not empty once it is to stop. Raises StoppedError, and typer's
    errors for an experiment that cannot be."""
    (point,) = entry_points(group=GROUP, name=name)
    run, cells = point.load(), 0
    kept = Path(os.environ.get(CHECKPOINT) or tempfile.mkdtemp(prefix="ces-bench-")) / "cells"
    kept.mkdir(parents=True, exist_ok=True)

    def done(more: int) -> None:
        nonlocal cells
        cells += more
        if not gang.rank:
            say(json.dumps({"progress": {"step": cells}}))
        if gang.any(bool(told)):
            raise StoppedError(f"stopped after {cells} cells")

    with tempfile.TemporaryDirectory() as folder, shared(Sharing(gang, kept, done)):
        out = Path(folder) / "out"
        if gang.rank:
            with redirect_stdout(io.StringIO()):
                run(**values, out=out)
            return
        say(f"{name} with {gang.size} ranks")
        run(**values, out=out)
        send(sorted(out.iterdir(), key=lambda file: (file.name != RESULTS, file.name)), say)


if __name__ == "__main__":
    take_part(partial(work_out, sys.argv[1], json.loads(sys.argv[2])))
