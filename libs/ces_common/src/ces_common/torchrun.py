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
WITH_VALUE: Final = frozenset(
    {
        *(FLAGS.keys() - {"standalone"}),
        *("nproc-per-node", "rdzv-conf", "max-restarts", "monitor-interval", "start-method", "event-log-handler"),
        *("role", "log-dir", "redirects", "tee", "local-ranks-filter", "duplicate-stdout-filters", "local-addr"),
        *("duplicate-stderr-filters", "logs-specs", "numa-binding", "signals-to-handle", "shutdown-timeout"),
    }
)
"""torchrun's long flags that take a value, here as of torch 2.13: it is no script's name."""
ALONE: Final = frozenset({"standalone", "module", "no-python", "run-path", "virtual-local-rank", "help", "use-env"})
"""Those that take none."""
_SHORT_WITH_VALUE: Final = ("-r", "-t")
_MODULES: Final = ("torch.distributed.run", "torch.distributed.launch")
_PYTHONS_WITH_VALUE: Final = ("-W", "-X")


def environment(*, nodes: int, address: str, port: int, rendezvous: str, grace: int) -> dict[str, str]:
    """torchrun's variables for every worker of an elastic group of ``nodes``: the first listens at the address, and the
    rendezvous has an id that no other start has had. ``grace``: seconds that programs have to end. A worker's own rank
    within the group is ``PET_NODE_RANK``."""
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
    words = iter(_torchruns_own(command))
    for word in words:
        if not word.startswith("-") or word == "--":
            return None
        flag, given, _ = word.partition("=")
        name = _name_of(flag[2:].replace("_", "-")) if flag.startswith("--") else None
        if name in FLAGS:
            return flag
        if word in _SHORT_WITH_VALUE or (name in WITH_VALUE and not given):
            next(words, None)
    return None


def _torchruns_own(command: Sequence[str]) -> Sequence[str]:
    """What follows torchrun on a command line; nothing where something else is called, whatever it is told."""
    first = 0
    while first < len(command) and (PurePosixPath(command[first]).name == "env" or "=" in command[first]):
        first += 1
    program = PurePosixPath(command[first]).name if first < len(command) else ""
    if program == "torchrun":
        return command[first + 1 :]
    words = enumerate(command[first + 1 :] if program.startswith("python") else (), first + 2)
    for after, word in words:
        if word == "-m":
            return command[after + 1 :] if after < len(command) and command[after] in _MODULES else ()
        if word in _PYTHONS_WITH_VALUE:
            next(words, None)
        elif not word.startswith("-"):
            return command[after:] if PurePosixPath(word).name == "torchrun" else ()
    return ()


def _name_of(given: str) -> str | None:
    """torchrun's flag that is meant: it takes any beginning that only one has."""
    known = WITH_VALUE | ALONE
    meant = [given] if given in known else [name for name in known if name.startswith(given)]
    return meant[0] if len(meant) == 1 else None
