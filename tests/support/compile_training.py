"""Compiles what training runs, before several processes of tests need it at once. Nothing where torch is missing."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

SMALL = {"updates": 1, "problems": 6, "group": 4, "minibatch_size": 64}
WIDTH = {"width": 16, "validation": 3}


def main() -> None:
    if find_spec("torch") is None:
        return
    from ces_rl.run import Run, train

    with TemporaryDirectory() as folder:
        train(Run.make("ppo", "placement", 1, SMALL, WIDTH, Path(folder) / "placement"))
        thesis = {name: value for name, value in SMALL.items() if name != "group"}
        train(Run.make("ppo", "thesis", 1, thesis, WIDTH, Path(folder) / "thesis"))
        team = {"updates": 1, "problems": 1, "minibatch_size": 64}
        train(Run.make("mappo", "tapfinger", 1, team, {"width": 8, "validation": 1}, Path(folder) / "tapfinger"))


if __name__ == "__main__":
    main()
