"""The file that says which other regions there are, and what each is trusted with."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, SecretStr, model_validator

from ces_common.fields import Document, Name, NodeName, RegionName
from ces_common.jobfile import ANY_REGION
from ces_common.messages.identities import MAX_PRIORITY, Priority
from ces_common.messages.regions import MAX_ACCEPTED, MAX_REGIONS
from ces_common.quantities import Bandwidth
from ces_common.service import BadSetup
from ces_common.setup_files import read_setup_file

VARIABLE = "CES_REGIONS_FILE"
LEAST_TOKEN = 32  # characters
LONGEST_GATEWAY = 45  # characters: a node is named after it and its region


class BorderLink(Document):
    """The border link to another region: from ``gateway``, a node here, to ``there``, a node of that region, where its
    file must say the same of this one. ``bandwidth``: bit/s from here to there, which this region alone gives away."""

    gateway: NodeName
    there: NodeName
    bandwidth: Bandwidth

    @model_validator(mode="after")
    def _named(self) -> Self:
        if len(self.there) > LONGEST_GATEWAY:
            raise ValueError(f"there: a gateway's name has {LONGEST_GATEWAY} characters at most")
        if self.bandwidth <= 0:
            raise ValueError("bandwidth: must be more than zero")
        return self


class Peer(Document):
    """``token``: a secret that this pair of regions shares, and no third one. ``accept``: tenants of the other region
    whose jobs may run here: none unless named. ``tenants``: as whose each of them counts here. ``max_priority``: no job
    of theirs is more urgent here. ``border``: the link to that region, over which jobs may be split."""

    token: SecretStr
    accept: Annotated[list[Name], Field(max_length=MAX_ACCEPTED)] = []
    tenants: Annotated[dict[Name, Name], Field(max_length=MAX_ACCEPTED)] = {}
    max_priority: Priority = MAX_PRIORITY // 2
    border: BorderLink | None = None

    @model_validator(mode="after")
    def _mapped(self) -> Self:
        if len(self.token.get_secret_value()) < LEAST_TOKEN:
            raise ValueError(f"token: must have {LEAST_TOKEN} characters at least")
        missing = sorted(set(self.accept) - self.tenants.keys())
        if missing:
            raise ValueError(f"tenants: say as whose jobs those of the accepted {missing[0]!r} count here")
        return self


class PeersFile(Document):
    peers: Annotated[dict[RegionName, Peer], Field(max_length=MAX_REGIONS)] = {}

    @model_validator(mode="after")
    def _apart(self) -> Self:
        tokens = [peer.token.get_secret_value() for peer in self.peers.values()]
        if len(set(tokens)) < len(tokens):
            raise ValueError("peers: each pair of regions needs a token of its own, and two are the same")
        return self


def read_peers(path: Path, region: str) -> dict[str, Peer]:
    """Raises BadSetup."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError as error:
        raise BadSetup(f"{VARIABLE}: {path} cannot be read: {error.strerror or error}") from error
    if mode & 0o077:
        raise BadSetup(f"{VARIABLE}: {path} can be read by others (mode {mode:o}): chmod 600 it")
    peers = read_setup_file(path, PeersFile, VARIABLE).peers
    if ANY_REGION in (region, *peers):
        raise BadSetup(f"{VARIABLE}: {path}: {ANY_REGION} stands for every region: name none so")
    if region in peers:
        raise BadSetup(f"{VARIABLE}: {path}: peers.{region}: that is this region itself (CES_REGION): leave it out")
    return peers
