"""All code that needs root for networking: a node's data plane in the kernel."""

from ces_edge_agent.dataplane.errors import DataPlaneError
from ces_edge_agent.dataplane.none import NoNetwork
from ces_edge_agent.dataplane.tc_network import TcNetwork

__all__ = ["DataPlaneError", "NoNetwork", "TcNetwork"]
