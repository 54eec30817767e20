"""``python -m ces_workloads.train``: the training program that runs as a worker of a job.

Exit status: 0 done, 1 the training failed (a peer was lost, the replicas differ, ...), 2 bad arguments,
environment or data, 143 ended by SIGTERM.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from types import FrameType

SIGTERM_STATUS = 128 + signal.SIGTERM


def main(arguments: Sequence[str] | None = None) -> int:
    # As the first process of a container, a program without a handler would ignore SIGTERM.
    signal.signal(signal.SIGTERM, _stop)
    options = _parser().parse_args(arguments)
    # Before numpy loads: many workers share few cores, and the networks trained here are small.
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    return _run(options, os.environ)


def _run(options: argparse.Namespace, environment: Mapping[str, str]) -> int:
    from ces_workloads import data, peers
    from ces_workloads.links import PeerLost, RendezvousFailed, connect_ring
    from ces_workloads.replica import Settings, TrainingFailed, train_ring
    from ces_workloads.report import Reporter

    try:
        members = peers.from_environment(environment)
        images = data.load(options.data, environment)
    except (peers.BadEnvironment, data.DataUnavailable) as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        return 2
    reporter = Reporter(members.rank)
    reporter.log(
        f"{members.me.task} on {members.me.node}, job {members.job}, {members.world_size} workers; "
        f"{options.data}: {len(images.train)} images to train on, {len(images.test)} held out"
    )
    reserved = members.bandwidth_to(members.next)
    reporter.log(
        f"sends to {members.next}, "
        + (f"{reserved / 1e6:g} Mbit/s reserved" if reserved is not None else "without a reserved flow")
    )
    settings = Settings(
        rounds=options.rounds,
        target_accuracy=options.target_accuracy,
        hidden=options.hidden,
        batch=options.batch,
        learning_rate=options.lr,
        seed=options.seed,
    )
    try:
        links = connect_ring(members, options.rendezvous_timeout)
        reporter.log("the ring is closed, training starts")
        try:
            result = train_ring(settings, images, members.rank, members.world_size, links, reporter)
            links.finish()
        finally:
            links.close()
    except (RendezvousFailed, PeerLost, TrainingFailed) as error:
        reporter.log(f"error: {error}")
        return 1
    reporter.result(result)
    reporter.log(f"done: accuracy {result.accuracy:.4f} after {result.rounds} rounds in {result.seconds:.1f} s")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m ces_workloads.train",
        description="Train a small network together with the job's other workers.",
    )
    parser.add_argument("--algorithm", choices=["ring"], required=True, help="how workers combine their work")
    parser.add_argument(
        "--data",
        choices=["digits", "mnist", "fashion-mnist"],
        default="digits",
        help="digits comes with scikit-learn; the others are folders of CES_DATA_DIR with the 10,000 test "
        "images in IDX format, split 8000/2000 (default: %(default)s)",
    )
    parser.add_argument("--rounds", type=_positive, default=40, help="at most (default: %(default)s)")
    parser.add_argument("--target-accuracy", type=float, metavar="A", help="stop once this is reached (0..1)")
    parser.add_argument(
        "--hidden",
        type=_widths,
        default=(640, 640),
        metavar="N,N",
        help="widths of the hidden layers; by default 640,640: 1.8 MB of gradient a round",
    )
    parser.add_argument(
        "--batch", type=_positive, default=64, help="images per worker and round (default: %(default)s)"
    )
    parser.add_argument("--lr", type=float, default=0.05, help="learning rate (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of first parameters and shards (default: %(default)s)")
    parser.add_argument(
        "--rendezvous-timeout",
        type=float,
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


def _widths(text: str) -> tuple[int, ...]:
    return tuple(_positive(part) for part in text.split(","))


def _stop(signum: int, frame: FrameType | None) -> None:
    sys.exit(SIGTERM_STATUS)


if __name__ == "__main__":
    sys.exit(main())
