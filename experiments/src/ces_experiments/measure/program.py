"""Programs whose steps are counted, as they run on an emulated node. Standard library, and numpy for one of them.

Arguments: the program, and how many processes do it. It says ``ready``, waits for a line with a number of seconds,
works for so long, and says what all its processes have done.
"""

import hashlib
import json
import math
import os
import random
import sys
import time
import zlib
from collections.abc import Callable


def primes() -> Callable[[], object]:
    """Python's own loops."""

    def step() -> list[int]:
        return [n for n in range(3, 1500, 2) if all(n % d for d in range(3, math.isqrt(n) + 1, 2))]

    return step


def documents() -> Callable[[], object]:
    """JSON, written and read."""
    document = {f"name{i}": [i, i / 7, str(i), {"on": i % 2 == 0}] for i in range(300)}
    return lambda: json.loads(json.dumps(document))


def packing() -> Callable[[], object]:
    """zlib over 64 KiB of words."""
    words = random.Random(1).choices([b"roof ", b"gate ", b"camera ", b"frame "], k=16_384)
    data = b"".join(words)[: 64 * 1024]
    return lambda: zlib.compress(data, 6)


def sorting() -> Callable[[], object]:
    """Floats from an order that has none."""
    drawn = random.Random(2)
    values = [drawn.random() for _ in range(10_000)]
    return lambda: sorted(values)


def hashing() -> Callable[[], object]:
    """SHA-256 over a MiB."""
    data = os.urandom(2**20)
    return lambda: hashlib.sha256(data).digest()


def solving() -> Callable[[], object]:
    """Linear equations in 150 unknowns, by numpy."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    import numpy

    drawn = numpy.random.default_rng(3)
    matrix, right = drawn.normal(size=(150, 150)), drawn.normal(size=150)
    return lambda: numpy.linalg.solve(matrix, right)


PROGRAMS = {
    "primes": primes,
    "documents": documents,
    "packing": packing,
    "sorting": sorting,
    "hashing": hashing,
    "solving": solving,
}


def work(name: str, seconds: float) -> int:
    """How many steps were done."""
    step, done, until = PROGRAMS[name](), 0, time.monotonic() + seconds
    while time.monotonic() < until:
        step()
        done += 1
    return done


def main() -> None:
    name, processes = sys.argv[1], int(sys.argv[2])
    PROGRAMS[name]()()  # what it imports is there before it is measured
    print("ready", flush=True)
    seconds = float(sys.stdin.readline())
    pipes = []
    for _ in range(processes - 1):
        reading, writing = os.pipe()
        if os.fork() == 0:
            os.close(reading)
            os.write(writing, str(work(name, seconds)).encode())
            os._exit(0)
        os.close(writing)
        pipes.append(reading)
    done = work(name, seconds)
    for reading in pipes:
        done += int(os.read(reading, 64))
        os.wait()
    print(json.dumps({"steps": done}), flush=True)


if __name__ == "__main__":
    main()
