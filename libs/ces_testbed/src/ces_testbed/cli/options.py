"""Options of the commands, checked against what files hold and what this machine can do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ces_client.errors import bad_field
from ces_common.queuefile import read_queue
from ces_common.runtime import RuntimeKind
from ces_common.service import BadSetup
from ces_testbed.addressing import check_cluster
from ces_testbed.capability import why_no_engine, why_no_tc
from ces_testbed.spec import Network
from ces_testbed.topology import BadTopology, Topology, default_topology, load_topology

NameOption = Annotated[str, typer.Option("--name", help="of the cluster: lower-case letters and digits")]
TopologyOption = Annotated[
    Path | None, typer.Option("--topology", help="YAML file; by default six hosts around a switch")
]


class NetworkChoice(StrEnum):
    AUTO = "auto"
    TC = "tc"
    NONE = "none"


@dataclass(frozen=True)
class Choice:
    """``unenforced``: why bandwidth is not enforced; None where it is."""

    runtime: RuntimeKind
    network: Network
    unenforced: str | None

    @property
    def note(self) -> str:
        """What is enforced and what is not, in plain words."""
        if self.unenforced is None:
            return "network tc: every flow's bandwidth is enforced on emulated hosts and wires"
        return (
            f"network none ({self.unenforced}): jobs run and are planned, but bandwidth is not enforced or measured, "
            "hosts are not emulated, and workers are not isolated from each other's traffic"
        )


def choose(runtime: RuntimeKind, network: NetworkChoice) -> Choice:
    """Raises BadInput where this machine cannot do what was asked for by name."""
    if runtime == RuntimeKind.DOCKER and (reason := why_no_engine()) is not None:
        raise bad_field("The runtime docker cannot be used", "--runtime", reason, "start an engine, or use process")
    if network == NetworkChoice.NONE:
        return Choice(runtime, "none", "as asked")
    reason = why_no_tc()
    if reason is None:
        return Choice(runtime, "tc", None)
    if network == NetworkChoice.TC:
        raise bad_field("The network tc cannot be used", "--network", reason, "run as root on Linux, or use none")
    return Choice(runtime, "none", reason)


def checked_queue(path: Path | None) -> Path | None:
    """A queue's file that services will take. Raises BadInput."""
    try:
        read_queue(path)
    except BadSetup as error:
        raise bad_field("The queue's file cannot be used", "--queue", str(error), "correct the file") from error
    return path


def read_topology(path: Path | None) -> Topology:
    """Raises BadInput."""
    try:
        return default_topology() if path is None else load_topology(path)
    except BadTopology as error:
        raise bad_field("The topology cannot be used", "--topology", str(error), "correct the file") from error


def checked_name(name: str) -> str:
    """Raises BadInput."""
    try:
        return check_cluster(name)
    except ValueError as error:
        raise bad_field("The name cannot be used", "--name", str(error), "choose another one") from error


def is_given(ctx: typer.Context, parameter: str) -> bool:
    """Whether an option stands on the command line, and is not just its default."""
    source = ctx.get_parameter_source(parameter)
    return source is not None and source.name == "COMMANDLINE"


def option(parameter: str) -> str:
    """How a parameter of ``ces up`` is written."""
    return "--set" if parameter == "settings" else f"--{parameter}"
