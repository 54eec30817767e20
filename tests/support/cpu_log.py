"""The log of a job of two workers whose CPU grew once and fell once."""

from __future__ import annotations

from resize_log import event

LOG = [
    event("job.queued", 0.0),
    event("plan.committed", 1.0, allocations=[{"task": "w-0"}, {"task": "w-1"}]),
    event("job.running", 2.0),
    event("cpu.committed", 10.0, cpu=200),
    event("cpu.committed", 20.0, cpu=50),
    event("cpu.released", 21.0, task="w-0", cpu=50),
    event("cpu.released", 22.0, task="w-1", cpu=50),
    event("job.succeeded", 50.0),
]
