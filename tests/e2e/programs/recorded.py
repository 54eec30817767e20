"""A worker that leaves a record of its own life in its log: who it is, from when to when it lived.

Standard library only, one file: it is handed to workers as an environment variable, so that it needs neither a place
on a node's disk nor an image of its own. Arguments: seconds to live in all, how to end (an exit status; ``hang``
never ends by itself, ``stubborn`` ends then but not when it is told to), a file: while it is there, the worker lives
on, and ``busy``, if it takes all CPU that it gets. Times are CLOCK_BOOTTIME, which all processes of a machine share.
"""

import os
import signal
import sys
import time

BEAT_S = 0.05


def now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def say(kind: str) -> None:
    print(f"record {kind} {WHO} {now():.6f} {time.time():.6f}", flush=True)


WHO = " ".join((os.environ["CES_TASK"], os.environ["CES_INCARNATION"], os.environ["CES_ADDRESS"], os.urandom(6).hex()))
LIFE_S, ENDING = float(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "0"
HOLD = sys.argv[3] if len(sys.argv) > 3 else ""
BUSY = sys.argv[4:] == ["busy"]


def stopped(*_: object) -> None:
    say("end")
    os._exit(143)


signal.signal(signal.SIGTERM, signal.SIG_IGN if ENDING == "stubborn" else stopped)
say("start")
born = now()
while ENDING == "hang" or now() - born < LIFE_S or os.path.exists(HOLD):
    if BUSY:
        beat = now()
        while now() - beat < BEAT_S:
            pass
    else:
        time.sleep(BEAT_S)
    say("beat")
say("end")
sys.exit(int(ENDING) if ENDING.isdigit() else 0)
