"""What torchrun is told of a malleable job. Pure.

torchrun can have a range of nodes: it waits for late ones, numbers all by host names, and starts its programs again
when one comes or goes. Of a malleable job CES decides all of that, and says at each start what has become of it, in
variables that torchrun reads where its command line has no such flag.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Final

FLAGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "nnodes": "PET_NNODES",
        "node-rank": "PET_NODE_RANK",
        "rdzv-backend": "PET_RDZV_BACKEND",
        "rdzv-endpoint": "PET_RDZV_ENDPOINT",
        "rdzv-id": "PET_RDZV_ID",
        "master-addr": "PET_MASTER_ADDR",
        "master-port": "PET_MASTER_PORT",
        "standalone": "PET_STANDALONE",
    }
)
"""Flag of torchrun's that decides who takes part -> the variable by which CES says it."""
_MODULE: Final = "torch.distributed.run"


def environment(*, nodes: int, address: str, port: int, rendezvous: str, grace: int) -> dict[str, str]:
    """For every worker of an elastic group of so many: the first listens at the address, and the rendezvous has an id
    that no other start has had. ``grace``: seconds that programs have to end. A worker's own rank within the group is
    ``PET_NODE_RANK``."""
    told = {
        "nnodes": str(nodes),
        "rdzv-backend": "static",
        "rdzv-endpoint": "",
        "rdzv-id": rendezvous,
        "master-addr": address,
        "master-port": str(port),
        "standalone": "0",
    }
    return {FLAGS[flag]: value for flag, value in told.items()} | {"PET_SHUTDOWN_TIMEOUT": str(grace)}


def flag_of_ces(command: Sequence[str]) -> str | None:
    """The first flag on a command line of torchrun's that would overrule what CES says; None where there is none, or
    another program is called. What follows the script is the script's own."""
    calls = [i for i, word in enumerate(command) if word == _MODULE or PurePosixPath(word).name == "torchrun"]
    if not calls:
        return None
    for word in command[calls[0] + 1 :]:
        if word in ("-m", "--module") or word.endswith(".py"):
            return None
        flag = word.partition("=")[0]
        if flag.startswith("--") and flag[2:].replace("_", "-") in FLAGS:
            return flag
    return None
