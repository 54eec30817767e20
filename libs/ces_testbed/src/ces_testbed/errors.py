"""What can go wrong with a testbed or a local cluster, in words for whoever started it."""

from __future__ import annotations


class TestbedError(RuntimeError):
    """Something of the testbed could not be made or reached; the text says what."""

    __test__ = False  # not a test class, whatever pytest thinks of the name


class StartFailed(TestbedError):
    """The cluster could not be started; the text says what failed, with the end of its log."""


class Interrupted(TestbedError):
    """Somebody asked for an end while the cluster was starting."""


class NameTaken(TestbedError):
    """Another cluster on this machine has the name; the text says whose it is."""
