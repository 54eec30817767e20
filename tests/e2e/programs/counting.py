"""Counts steps, and goes on where its job's checkpoint is. Rank 0 keeps the books; the others are there to be counted.

Argument: a file; while it is there, it counts on. With ``--deaf`` it does not write a checkpoint when it is told to
end, only every ten steps. With ``--steps`` it tells CES its steps, ten a second; with ``--scales`` as well, the more
workers, the faster. When it ends by itself it says as JSON what all starts of the job have done.
"""

import json
import os
import signal
import sys
import time

HOLD, DEAF = sys.argv[1], "--deaf" in sys.argv
FOLDER = os.environ.get("CES_CHECKPOINT")
EVERY = 10
SIZE = int(os.environ["WORLD_SIZE"])
STEP_S = 0.4 / SIZE if "--scales" in sys.argv else 0.1 if "--steps" in sys.argv else 0.02
TOLD = "step" if "--steps" in sys.argv else "round"


def lines_of(name: str) -> list[str]:
    try:
        with open(f"{FOLDER}/{name}") as file:
            return file.read().splitlines()
    except FileNotFoundError:
        return []


def write(step: int) -> None:
    with open(f"{FOLDER}/new", "w") as file:
        file.write(str(step))
    os.rename(f"{FOLDER}/new", f"{FOLDER}/step")


def note(kind: str, step: int) -> None:
    with open(f"{FOLDER}/notes", "a") as file:
        file.write(json.dumps([kind, SIZE, step]) + "\n")


def main() -> None:
    if FOLDER is None:
        while os.path.exists(HOLD):
            time.sleep(0.05)
        return
    step = int("".join(lines_of("step")) or 0)
    told = []
    if not DEAF:
        signal.signal(signal.SIGTERM, lambda *_: told.append(1))
    note("begins", step)
    while os.path.exists(HOLD) and not told:
        time.sleep(STEP_S)
        step += 1
        if step % EVERY == 0:
            write(step)
        print(json.dumps({"progress": {TOLD: step}}), flush=True)
    if told:
        write(step)
        note("told", step)
        sys.exit(143)
    note("ends", step)
    print(json.dumps({"notes": [json.loads(line) for line in lines_of("notes")]}), flush=True)


main()
