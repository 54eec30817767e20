"""A worker that spends CPU time and nothing else: it goes on as fast as its control group lets it.

Argument: the CPU-seconds that it spends, its own start included. In the end it says as JSON from when to when it was
measured, by the machine's clock, and what it spent in between. Standard library only, and little of that: where it has
a twentieth of a core, a start that takes a tenth of a second takes two.
"""

import sys
import time

ROUND = 5000  # some 100 microseconds between two looks at the clock


def main() -> None:
    began, before, work = time.time(), time.process_time(), float(sys.argv[1])
    while time.process_time() < work:
        for _ in range(ROUND):
            pass
    spent = time.process_time() - before
    print(f'{{"burnt": {{"began": {began}, "ended": {time.time()}, "spent_s": {spent}}}}}', flush=True)


if __name__ == "__main__":
    main()
