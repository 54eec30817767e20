"""Largest sizes by model and batch, as the public simulator sets them by hand for its elastic policies."""

from __future__ import annotations

import math

from ces_core.malleable.model import SpeedProfile
from ces_sim.malleable.traces import TracedJob

MOST = 64
T4 = {"bert": 16, "cifar10": 16, "yolov3": 4, "ncf": 1}
A100 = {
    ("gpt2", 128): 16, ("gpt2", 256): 32, ("bert", 64): 8, ("bert", 128): 16, ("inception3", 64): 16,
    ("inception3", 128): 32, ("resnet50", 64): 32, ("vgg16", 64): 32,
}  # fmt: skip


def elastic_cap(job: TracedJob, gpu: str) -> int:
    """The largest size of a job under ElasticFlow, in GPUs."""
    if gpu == "T4":
        return 32 if (job.model, job.batch) == ("deepspeech2", 320) else T4.get(job.model, MOST)
    return A100.get((job.model, job.batch), job.batch if job.model == "deepspeech2" else min(job.batch, MOST))


def measured_cap(job: TracedJob) -> int:
    """The largest size of a job under the other policies: whatever was measured, useful or not."""
    return min(MOST, job.batch, max(size for size, rate in job.speeds.items() if not math.isnan(rate)))


def profile(job: TracedJob, most: int) -> SpeedProfile:
    """Every measured size up to ``most`` that runs at all, whether it is faster than a smaller one or not."""
    return SpeedProfile.of({size: rate for size, rate in job.speeds.items() if size <= most})
