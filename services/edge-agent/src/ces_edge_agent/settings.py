"""The agent's settings, from ``CES_*`` in the environment; the machine's resources are detected if not given."""

from __future__ import annotations

import os
import platform
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final, Literal, Self

import psutil
from pydantic import Field, ValidationInfo, field_validator, model_validator
from pydantic_settings import NoDecode

from ces_common.fields import NodeName
from ces_common.messages.cards import Card
from ces_common.messages.profiles import CURVE_POINTS, Metres, NodeProfile, Position, Watts
from ces_common.names import DATA_PLANE
from ces_common.quantities import Cpu, Memory, parse_memory
from ces_common.runtime import RuntimeKind
from ces_common.settings import ServiceSettings
from ces_edge_agent.energy.rapl import POWERCAP
from ces_edge_agent.lending.decision import Rules
from ces_edge_agent.runtimes.disk_meter import DISK
from ces_edge_agent.runtimes.images import parse_pattern
from ces_edge_agent.runtimes.worker_users import DEFAULT_UIDS, parse_uids

LENT_MEMORY: Final = 0.9
"""Share of its memory that a lent device offers at most."""
_ARCH = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm"}


def _arch() -> str:
    machine = platform.machine()
    return _ARCH.get(machine, machine)


def _most_memory(lent: bool) -> int:
    """Bytes; of a lent device less than all, since it is reclaimed when memory runs short."""
    total = psutil.virtual_memory().total
    return int(LENT_MEMORY * total) if lent else total


def _overlap(one: Path, other: Path) -> bool:
    return one.is_relative_to(other) or other.is_relative_to(one)


class AgentSettings(ServiceSettings):
    """``insecure``: go to a manager and a NATS on other machines in the clear, inside a VPN, say."""

    node: NodeName
    manager_url: str = "http://127.0.0.1:8080"
    insecure: bool = False
    join_token: str | None = None
    join_token_file: Path | None = None  # file with the token
    state_dir: Path = Path("/var/lib/ces-agent")
    lent: bool = False  # the device has an owner, who has it back at any time
    # Defaults of settings are validated like values: this one is written in cores.
    node_cpu: Cpu = Field(default_factory=lambda: os.cpu_count() or 1)
    node_memory: Memory = Field(default_factory=lambda data: _most_memory(data.get("lent", False)))
    node_gpu: Annotated[int, Field(ge=0, le=1024)] | None = None  # None: as many as are found
    gpu_shares: bool = True  # whether jobs may have a part of a card each
    gpu_fake: Annotated[list[Card], NoDecode] = []  # CES_GPU_FAKE="GPU-a:T4:16Gi,GPU-b:P100:16Gi"
    node_arch: str = Field(default_factory=_arch)
    node_labels: Annotated[dict[str, str], NoDecode] = {}  # CES_NODE_LABELS="site=roof,floor=3"
    node_position: Annotated[Position | None, NoDecode] = None  # CES_NODE_POSITION="51.0504,13.7373"
    node_coverage: Metres | None = None  # around it
    host_address: str = "127.0.0.1"  # where the hosts of other nodes reach this one
    runtime: RuntimeKind = RuntimeKind.PROCESS
    network: Literal["tc", "none"] = "none"
    data_plane: str = DATA_PLANE
    wireguard_port: Annotated[int, Field(ge=1, le=65535)] = 51872  # UDP, of encrypted links
    link_key_days: Annotated[float, Field(gt=0)] = 30.0  # the age at which their key is replaced
    cluster: str = "ces"  # tells containers of several clusters on one engine apart
    sandbox_image: str = "ces-sandbox"
    allowed_images: Annotated[list[str], NoDecode] = ["ces-worker-*"]
    pull_images: bool = False
    worker_disk: Annotated[Memory, Field(ge=2**20, le=2**60)] = DISK  # what a worker may keep in its folder
    checkpoint_copy_s: Annotated[float, Field(ge=1)] = 60.0  # between two copies of a malleable job's newest checkpoint
    datasets: Path | None = None  # each folder in it is a dataset that jobs may read
    hide: Annotated[list[Path], NoDecode] = []  # files and folders that confined worker processes do not see
    worker_uids: str = DEFAULT_UIDS  # of worker processes, one for each allocation, where the agent is root
    measure: bool = True  # how fast the node is, once it has joined
    heartbeat_s: Annotated[float, Field(gt=0)] = 2.0
    stop_grace_s: Annotated[float, Field(ge=0)] = 5.0
    owner_group: Annotated[str, Field(max_length=255)] = ""  # the owner's control group
    lent_quiet_s: Annotated[float, Field(gt=0, le=86400)] = 60.0
    lent_below: Annotated[float, Field(gt=0, le=100)] = 20.0  # percent of the CPU
    reclaim_at: Annotated[float, Field(gt=0, le=100)] = 50.0  # percent of the CPU
    log_keep_s: Annotated[float, Field(gt=0)] = 24 * 3600.0
    power_idle: Watts | None = None  # what the machine uses without work
    power_peak: Watts | None = None  # and with all of its CPU in use
    power_curve: Annotated[list[Watts], NoDecode] = []  # CES_POWER_CURVE="4,5,6,7,8,9,10,11,12,13,14"
    powercap: Path = Path(POWERCAP)  # where the kernel shows the processor's energy counters

    @property
    def power_model(self) -> list[float] | None:
        """Watts at equally spaced shares of the CPU in use; None where nothing is said of them."""
        if self.power_curve:
            return self.power_curve
        return None if self.power_idle is None or self.power_peak is None else [self.power_idle, self.power_peak]

    @property
    def profile(self) -> NodeProfile | None:
        """What the manager is told of the node beyond its amounts; None where nothing is said."""
        said = NodeProfile(position=self.node_position, coverage=self.node_coverage, power=self.power_model or [])
        return None if said == NodeProfile() else said

    @property
    def idle_watts(self) -> float | None:
        return self.power_curve[0] if self.power_curve else self.power_idle

    @property
    def lending(self) -> Rules:
        rules = Rules(quiet_s=self.lent_quiet_s, lend_below=self.lent_below / 100, reclaim_at=self.reclaim_at / 100)
        return replace(rules, longest_quiet_s=max(rules.longest_quiet_s, rules.quiet_s))

    @field_validator("node_memory")
    @classmethod
    def _leaves_some(cls, value: int, info: ValidationInfo) -> int:
        if info.data.get("lent") and value > (most := _most_memory(lent=True)):
            raise ValueError(
                f"must be {most} bytes at most: a device with CES_LENT=true offers {LENT_MEMORY:.0%} of its memory at "
                "most, since it is reclaimed when that runs short"
            )
        return value

    @field_validator("reclaim_at")
    @classmethod
    def _above(cls, value: float, info: ValidationInfo) -> float:
        below = info.data.get("lent_below")
        if below is not None and value <= below:
            raise ValueError(f"must be above CES_LENT_BELOW ({below:g}), or the device would go to and fro")
        return value

    @field_validator("owner_group")
    @classmethod
    def _below_the_root(cls, value: str) -> str:
        if ".." in Path(value).parts or (value and not value.strip("/")):
            raise ValueError("must name a control group below the root, such as user.slice")
        return value

    @field_validator("datasets", mode="before")
    @classmethod
    def _given(cls, value: object) -> object:
        return None if value == "" else value  # pathlib would take it for the working folder

    @field_validator("datasets")
    @classmethod
    def _apart(cls, value: Path | None, info: ValidationInfo) -> Path | None:
        """The folder's content is served to jobs: it must not contain the agent's own secrets."""
        if value is None:
            return None
        if not value.is_absolute():
            raise ValueError(f"must be an absolute path, not {str(value)!r}: write /srv/datasets, say")
        offered = Path(os.path.realpath(value))
        own = info.data.get("state_dir")
        if offered == Path("/") or (own is not None and _overlap(offered, Path(os.path.realpath(own)))):
            raise ValueError(
                f"must not be {value}, which is, contains or lies within the agent's own folder "
                f"CES_STATE_DIR ({own}): name a folder that holds nothing but datasets"
            )
        return value

    @field_validator("power_curve")
    @classmethod
    def _whole_curve(cls, value: list[float]) -> list[float]:
        if value and len(value) != CURVE_POINTS:
            raise ValueError(f"must be {CURVE_POINTS} numbers, watts at 0, 10, ... 100 % of the CPU, not {len(value)}")
        return value

    @model_validator(mode="after")
    def _one_model(self) -> Self:
        if self.power_curve and (self.power_idle, self.power_peak) != (None, None):
            raise ValueError("CES_POWER_CURVE says what CES_POWER_IDLE and CES_POWER_PEAK do: set it, or these")
        if self.power_peak is not None and (self.power_idle is None or self.power_idle > self.power_peak):
            raise ValueError("CES_POWER_PEAK needs CES_POWER_IDLE, which must be no more than it")
        return self

    @field_validator("allowed_images")
    @classmethod
    def _patterns(cls, value: list[str]) -> list[str]:
        for pattern in value:
            parse_pattern(pattern)
        return value

    @field_validator("worker_uids")
    @classmethod
    def _users(cls, value: str) -> str:
        parse_uids(value)
        return value

    @field_validator("gpu_fake", mode="before")
    @classmethod
    def _fakes(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        parts = [part.strip().split(":") for part in value.split(",") if part.strip()]
        if any(len(part) != 3 for part in parts):
            raise ValueError("write cards as ID:MODEL:MEMORY, such as GPU-a:T4:16Gi,GPU-b:P100:16Gi")
        return [
            Card(id=name, model=model, memory=parse_memory(size), shareable="counted") for name, model, size in parts
        ]

    @field_validator("node_labels", mode="before")
    @classmethod
    def _labels(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        pairs = [part.partition("=") for part in value.split(",") if part.strip()]
        if any(not sep or not key.strip() for key, sep, _ in pairs):
            raise ValueError("write labels as key=value,key=value")
        return {key.strip(): label.strip() for key, _, label in pairs}

    @field_validator("node_position", mode="before")
    @classmethod
    def _position(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        if not value.strip():
            return None
        lat, _, lon = value.partition(",")
        try:
            return Position(lat=float(lat), lon=float(lon))
        except ValueError as error:
            raise ValueError("write a position as LAT,LON in degrees, such as 51.0504,13.7373") from error

    @model_validator(mode="after")
    def _placed(self) -> Self:
        if self.node_coverage is not None and self.node_position is None:
            raise ValueError("CES_NODE_COVERAGE needs CES_NODE_POSITION, around which it is")
        return self

    @field_validator("allowed_images", "hide", "power_curve", mode="before")
    @classmethod
    def _listed(cls, value: object) -> object:
        return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value
