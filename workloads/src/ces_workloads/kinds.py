"""The algorithms of the training program by the names that ``--algorithm`` takes."""

from __future__ import annotations

from ces_workloads.etree import ETree
from ces_workloads.gossip import Gossip
from ces_workloads.parameter_server import ParameterServer
from ces_workloads.ring import RingTraining
from ces_workloads.rounds import Kind

KINDS: dict[str, Kind] = {
    "ring": RingTraining,
    "gossip": Gossip,
    "etree": ETree,
    "parameter-server": ParameterServer,
}
