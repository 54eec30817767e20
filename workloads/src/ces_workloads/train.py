"""``python -m ces_workloads.train``: the training program that runs as a worker of a job.

Exit status: 0 done, 1 the training failed (a peer was lost, the replicas differ, ...), 2 bad arguments,
environment or data, or a job without the flows that the algorithm needs, 143 ended by SIGTERM.
"""

from __future__ import annotations

import argparse
import math
import os
import signal
import sys
from collections.abc import Iterable, Mapping, Sequence
from types import FrameType

LONGEST_RENDEZVOUS = 7 * 24 * 3600  # seconds
SIGTERM_STATUS = 128 + signal.SIGTERM


def main(arguments: Sequence[str] | None = None) -> int:
    # As the first process of a container, a program without a handler would ignore SIGTERM.
    signal.signal(signal.SIGTERM, _stop)
    # Before numpy loads: many workers share few cores, and the networks trained here are small.
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    from ces_workloads.kinds import KINDS

    options = _parser(KINDS).parse_args(arguments)
    return _run(options, os.environ)


def _run(options: argparse.Namespace, environment: Mapping[str, str]) -> int:
    from ces_workloads import data, peers, rounds
    from ces_workloads.connections import PeerLost
    from ces_workloads.kinds import KINDS
    from ces_workloads.rendezvous import RendezvousFailed, connect
    from ces_workloads.replica import Settings
    from ces_workloads.report import Reporter

    kind = KINDS[options.algorithm]
    settings = Settings(
        rounds=options.rounds,
        until_accuracy=options.until_accuracy,
        hidden=options.hidden,
        batch=options.batch,
        learning_rate=options.lr,
        seed=options.seed,
    )
    try:
        members = peers.from_environment(environment)
        neighbours = kind.connections(members)
        images = data.load(options.data, environment)
        reporter = Reporter(members.rank)
        reporter.log(
            f"{options.algorithm}: {members.me.task} on {members.me.node}, job {members.job}, "
            f"{members.world_size} workers; "
            f"{options.data} {images.origin}: {len(images.train)} images to train on, {len(images.test)} held out"
        )
        for peer in neighbours.sends:
            reporter.log(f"sends to {peer}, {(members.bandwidth_to(peer) or 0) / 1e6:g} Mbit/s reserved")
        connections = connect(members, neighbours, options.rendezvous_timeout)
        with rounds.taking_part(connections):
            reporter.log("all neighbours are there, training starts")
            algorithm = kind(settings, images, members, connections)
            result = rounds.train(
                options.algorithm, algorithm, settings, members.rank, members.world_size, connections, reporter
            )
    except (peers.BadEnvironment, data.DataUnavailable) as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        return 2
    except (RendezvousFailed, PeerLost, rounds.TrainingFailed) as error:
        reporter.log(f"error: {error}")
        return 1
    reporter.result(result)
    reporter.log(f"done: accuracy {result.accuracy:.4f} after {result.rounds} rounds in {result.seconds:.1f} s")
    return 0


def _parser(algorithms: Iterable[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m ces_workloads.train",
        description="Train a small network together with the job's other workers.",
    )
    parser.add_argument("--algorithm", choices=list(algorithms), required=True, help="how workers combine their work")
    parser.add_argument(
        "--data",
        choices=["digits", "mnist", "fashion-mnist"],
        default="digits",
        help="digits comes with scikit-learn; the others are datasets of the job's inputs, or folders of CES_DATA_DIR, "
        "with the 10,000 test images in IDX format, split 8000/2000 (default: %(default)s)",
    )
    parser.add_argument("--rounds", type=_positive, default=40, help="at most (default: %(default)s)")
    parser.add_argument(
        "--until-accuracy",
        "--target-accuracy",
        type=_share,
        metavar="A",
        help="stop once this is reached (0..1); --target-accuracy is its older name",
    )
    parser.add_argument(
        "--hidden",
        type=_widths,
        default=(640, 640),
        metavar="N,N",
        help="widths of the hidden layers; by default 640,640: a model of 1.8 MB for digits, 3.7 MB for MNIST",
    )
    parser.add_argument(
        "--batch", type=_positive, default=64, help="images per worker and round (default: %(default)s)"
    )
    parser.add_argument("--lr", type=_rate, default=0.05, help="learning rate (default: %(default)s)")
    parser.add_argument("--seed", type=_seed, default=0, help="of first parameters and shards (default: %(default)s)")
    parser.add_argument(
        "--rendezvous-timeout",
        type=_wait,
        default=60.0,
        metavar="SECONDS",
        help="how long to wait for the other workers to start (default: %(default)s)",
    )
    return parser


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return value


def _seed(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text} is not at least 0")
    return value


def _rate(text: str) -> float:
    value = float(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return value


def _wait(text: str) -> float:
    value = float(text)
    if not 0 < value <= LONGEST_RENDEZVOUS:
        raise argparse.ArgumentTypeError(f"{text} is not above 0 and at most {LONGEST_RENDEZVOUS} seconds")
    return value


def _share(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not within 0..1")
    return value


def _widths(text: str) -> tuple[int, ...]:
    return tuple(_positive(part) for part in text.split(","))


def _stop(signum: int, frame: FrameType | None) -> None:
    sys.exit(SIGTERM_STATUS)


if __name__ == "__main__":
    sys.exit(main())
