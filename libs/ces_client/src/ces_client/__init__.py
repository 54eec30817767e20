"""CES Python SDK; the ``ces`` command is in ``ces_client.cli``."""

from importlib.metadata import version

from ces_client.client import Client
from ces_client.context import Context, load_context, save_context
from ces_client.errors import ApiError, BadInput, CesError, UnexpectedAnswer, Unreachable
from ces_client.files import load_job, load_topology
from ces_client.stream import StreamEvent

__version__ = version("ces-client")

__all__ = [
    "ApiError",
    "BadInput",
    "CesError",
    "Client",
    "Context",
    "StreamEvent",
    "UnexpectedAnswer",
    "Unreachable",
    "__version__",
    "load_context",
    "load_job",
    "load_topology",
    "save_context",
]
