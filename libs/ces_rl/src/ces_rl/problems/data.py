"""The settings that say what an environment learns on and is validated on, common to all that place jobs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from ces_rl.envs.simulation import SlotSize
from ces_rl.problems.draw import Kinds
from ces_rl.problems.source import Drawn, Source, Stored, on_topology, packed, read_folder
from ces_rl.problems.validation import FIRST_SEED, Validation, named_by_content

KEPT = "validation.json"
TOPOLOGY_SEED = 100_000
"""First seed of the training jobs on one's own network."""


@dataclass(frozen=True)
class Data:
    """Drawn jobs, unless ``instances`` or ``topology`` names one's own."""

    instances: Annotated[
        str, Field(description="folder of instances (*.json) to learn on; every tenth is held out to validate on")
    ] = ""
    topology: Annotated[
        str, Field(description="network to learn on: a GraphML file, or a shape that `ces bench` knows; jobs are drawn")
    ] = ""
    topology_jobs: Annotated[int, Field(ge=1, description="jobs that are drawn on that network")] = 1000
    validation: Annotated[int, Field(ge=1, description="drawn instances of each regime to validate on")] = 200

    def source(
        self, kinds_at: Callable[[float], Kinds], size: SlotSize, odds: dict[str, float], tasks: tuple[int, int]
    ) -> Source:
        """Where training problems come from. Raises ValueError, naming the file that cannot be read."""
        if self.instances and self.topology:
            raise ValueError("name instances or a topology, not both")
        if self.instances:
            return Stored(packed(problem for _, problem in read_folder(Path(self.instances))[0]))
        if self.topology:
            return Stored(packed(on_topology(self.topology, odds, tasks, self.topology_jobs, TOPOLOGY_SEED)))
        return Drawn(size, kinds_at)

    def validation_set(self, folder: Path) -> Validation:
        """Held-out instances; what `search` reaches on them is kept in ``folder``."""
        kept = folder / KEPT
        if self.instances:
            return Validation.of({"instances": named_by_content(read_folder(Path(self.instances))[1])}, kept)
        return Validation.make(self.validation, kept=kept, topology=self.topology or None)

    @property
    def validated_on(self) -> str:
        """In words."""
        if self.instances:
            return f"every tenth of {self.instances}; regret to search"
        where = f" on {self.topology}" if self.topology else ""
        return f"{self.validation} of each regime{where}, seeds from {FIRST_SEED}; regret to search"
