"""Compiles what training of the named kinds runs, before several processes of tests need it at once. Nothing where
torch is missing."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

SMALL = {"updates": 1, "problems": 6, "minibatch_size": 64}
JUDGED = {"updates": 1, "episodes": 2, "limit": 60, "gradient_steps": 1, "batch_size": 4}
WIDTH = {"width": 16, "validation": 3}
KINDS = {
    "placement": [("ppo", "placement", SMALL | {"group": 4}, WIDTH), ("imitation", "placement", JUDGED, WIDTH)],
    "thesis": [("ppo", "thesis", SMALL, WIDTH)],
    "team": [("mappo", "tapfinger", SMALL | {"problems": 1}, {"width": 8, "validation": 1})],
}


def main() -> None:
    if find_spec("torch") is None:
        return
    from ces_rl.run import Run, train

    with TemporaryDirectory() as folder:
        for kind in sys.argv[1:]:
            for algorithm, env, settings, place in KINDS[kind]:
                train(Run.make(algorithm, env, 1, settings, place, Path(folder) / kind / algorithm))


if __name__ == "__main__":
    main()
