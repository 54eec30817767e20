"""Compiles what training of the named kinds runs, before several processes of tests need it at once. Nothing where
torch is missing."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

SMALL = {"updates": 1, "problems": 6, "minibatch_size": 64}
JUDGED = {"updates": 1, "episodes": 2, "limit": 60, "gradient_steps": 1, "batch_size": 4}
WIDTH = {"width": 16, "validation": 3}
KINDS: dict[str, list[tuple[str, str, dict[str, Any], dict[str, Any]]]] = {
    "placement": [("ppo", "placement", SMALL | {"group": 4}, WIDTH), ("imitation", "placement", JUDGED, WIDTH)],
    "thesis": [("ppo", "thesis", SMALL, WIDTH)],
    "team": [("mappo", "tapfinger", SMALL | {"problems": 1}, {"width": 8, "validation": 1})],
}


def main() -> None:
    with TemporaryDirectory() as folder:
        for kind in sys.argv[1:]:
            compile_ahead(kind, KINDS[kind], Path(folder))


def compile_ahead(kind: str, runs: Sequence[tuple[str, str, dict[str, Any], dict[str, Any]]], folder: Path) -> None:
    """By training so, into this folder."""
    if find_spec("torch") is None:
        return
    from ces_rl.run import Run, train

    for algorithm, env, settings, place in runs:
        train(Run.make(algorithm, env, 1, settings, place, folder / kind / algorithm))


if __name__ == "__main__":
    main()
