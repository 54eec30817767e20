"""A worker that takes all the CPU that it is given, beside taking its steps as those of the mix do: each takes the time
that it would, with as many workers as there are. So what workers cost an owner is real, and how fast they are is not.
"""

from __future__ import annotations

from threading import Thread

from ces_experiments.malleable.mix import program


def burn() -> None:
    while True:
        pass


if __name__ == "__main__":
    Thread(target=burn, daemon=True).start()
    program.main()
