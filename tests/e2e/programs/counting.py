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


def load() -> dict:
    try:
        with open(f"{FOLDER}/books") as file:
            return json.load(file)
    except FileNotFoundError:
        return {"step": 0, "notes": []}


def write(books: dict) -> None:
    with open(f"{FOLDER}/.new", "w") as file:
        json.dump(books, file)
    os.rename(f"{FOLDER}/.new", f"{FOLDER}/books")


def note(books: dict, kind: str) -> None:
    books["notes"].append([kind, SIZE, books["step"]])
    write(books)


def main() -> None:
    if FOLDER is None:
        while os.path.exists(HOLD):
            time.sleep(0.05)
        return
    books = load()
    told = []
    if not DEAF:
        signal.signal(signal.SIGTERM, lambda *_: told.append(1))
    note(books, "begins")
    while os.path.exists(HOLD) and not told:
        time.sleep(STEP_S)
        books["step"] += 1
        if books["step"] % EVERY == 0:
            write(books)
        print(json.dumps({"progress": {TOLD: books["step"]}}), flush=True)
    if told:
        note(books, "told")
        sys.exit(143)
    note(books, "ends")
    print(json.dumps({"notes": books["notes"]}), flush=True)


main()
