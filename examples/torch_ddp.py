"""A stock torch.distributed program: it trains scikit-learn's digits with DistributedDataParallel over gloo.

Nothing here knows about CES; any launcher that sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT can run it:

    torchrun --nproc-per-node 2 examples/torch_ddp.py
"""

from __future__ import annotations

import argparse
import json

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def digits() -> tuple[TensorDataset, TensorDataset]:
    """Images of 64 pixels from 0 to 1 with their digits: to train on, and a fifth that is held out."""
    data = load_digits()
    order = torch.randperm(len(data.target), generator=torch.Generator().manual_seed(0))
    images = torch.tensor(data.data, dtype=torch.float32)[order] / 16
    labels = torch.tensor(data.target)[order]
    held_out = len(labels) // 5
    return TensorDataset(images[held_out:], labels[held_out:]), TensorDataset(images[:held_out], labels[:held_out])


def network(hidden: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(64, hidden),
        nn.ReLU(),
        nn.Linear(hidden, hidden),
        nn.ReLU(),
        nn.Linear(hidden, 10),
    )


def accuracy(model: nn.Module, held_out: TensorDataset) -> float:
    images, labels = held_out.tensors
    with torch.no_grad():
        return (model(images).argmax(dim=1) == labels).float().mean().item()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--hidden", type=int, default=640)
    parser.add_argument("--lr", type=float, default=0.05)
    options = parser.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="env://")
    rank = dist.get_rank()

    train, held_out = digits()
    sampler: DistributedSampler = DistributedSampler(train)
    loader = DataLoader(train, batch_size=options.batch, sampler=sampler)
    model = DistributedDataParallel(network(options.hidden))
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr, momentum=0.9)

    for epoch in range(options.epochs):
        sampler.set_epoch(epoch)
        for batch, targets in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(batch), targets)
            loss.backward()
            optimizer.step()
        report = {
            "rank": rank,
            "epoch": epoch + 1,
            "loss": round(loss.item(), 4),
            "accuracy": round(accuracy(model.module, held_out), 4),
        }
        print(json.dumps(report), flush=True)

    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
