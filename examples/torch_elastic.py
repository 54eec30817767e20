"""A torch.distributed program for a malleable job: DistributedDataParallel that goes on with more or fewer ranks.

It trains the model of torch_ddp.py, which lies beside it. Each step takes a batch of the same size and in the same
order, of which every rank computes its share, so how many ranks there are changes nothing but rounding. Rank 0 writes a
checkpoint every few steps. When one of them is told to end, all stop after the same step, with one more checkpoint. Any
launcher of torch.distributed can run it:

    CES_CHECKPOINT=/tmp torchrun --nproc-per-node 2 examples/torch_elastic.py
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch_ddp import accuracy, digits, network

FOLDER = os.environ.get("CES_CHECKPOINT")  # rank 0 has it


def restore() -> dict[str, Any] | None:
    """What the last checkpoint holds, at every rank; None where there is none."""
    found = [None]
    if dist.get_rank() == 0 and FOLDER and os.path.exists(f"{FOLDER}/checkpoint"):
        found[0] = torch.load(f"{FOLDER}/checkpoint", weights_only=True)
    dist.broadcast_object_list(found, src=0)
    return found[0]


def save(checkpoint: dict[str, Any]) -> None:
    """Replace the checkpoint, so that a whole one is there whenever this ends."""
    if dist.get_rank() == 0 and FOLDER:
        with open(f"{FOLDER}/checkpoint.tmp", "wb") as file:
            torch.save(checkpoint, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(f"{FOLDER}/checkpoint.tmp", f"{FOLDER}/checkpoint")


def batch_of(step: int, batch: int, samples: int) -> torch.Tensor:
    """Which samples a step takes, whatever the number of ranks; each epoch has an order of its own."""
    epoch, at = divmod(step, samples // batch)
    order = torch.randperm(samples, generator=torch.Generator().manual_seed(epoch))
    return order[at * batch : (at + 1) * batch]


def say(kind: str, **values: Any) -> None:
    if dist.get_rank() == 0:
        sys.stdout.write(json.dumps({kind: values}) + "\n")  # in one piece: torchrun may write to the same pipe
        sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--batch", type=int, default=64, help="samples of a step, shared among all ranks")
    parser.add_argument("--every", type=int, default=20, help="steps from one checkpoint to the next")
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--lr", type=float, default=0.05)
    options = parser.parse_args()

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="env://")
    told: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: told.append(number))
    rank, ranks = dist.get_rank(), dist.get_world_size()

    torch.manual_seed(0)
    train, held_out = digits()
    images, labels = train.tensors
    plain = network(options.hidden)
    optimizer = torch.optim.SGD(plain.parameters(), lr=options.lr, momentum=0.9)
    step = 0
    if checkpoint := restore():
        step = checkpoint["step"]
        plain.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
    model = DistributedDataParallel(plain)
    say("begins", step=step, ranks=ranks)

    while step < options.steps:
        mine = batch_of(step, options.batch, len(labels))[rank::ranks]
        loss = nn.functional.cross_entropy(model(images[mine]), labels[mine], reduction="sum") / options.batch
        optimizer.zero_grad()
        (loss * ranks).backward()  # ranks are averaged, and their shares are to be added up
        optimizer.step()
        step += 1
        # All must stop after the same step, but are told at different moments.
        shared = torch.tensor([loss.item(), len(told)])
        dist.all_reduce(shared)
        stops = bool(shared[1])
        if stops or step % options.every == 0:
            save({"step": step, "model": plain.state_dict(), "optimizer": optimizer.state_dict()})
        say("progress", round=step, rounds=options.steps, loss=round(shared[0].item(), 4))
        if stops:
            sys.exit(128 + signal.SIGTERM)

    say("result", steps=step, accuracy=round(accuracy(plain, held_out), 4))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
