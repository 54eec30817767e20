"""A learned policy that chooses a region, from its ONNX file, asked through ONNX Runtime (the extra ``policy``).

The file carries what ``ces train ship`` writes into all policies: the hash of what it was trained to see, its version
and its card. The core has a reader of its own; services other than the scheduler do without the core.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ces_federation.sight import schema_hash

INPUTS, OUTPUT = ("regions", "job", "allowed"), "scores"
SCHEMA_KEY, VERSION_KEY = "ces.schema", "ces.version"
LARGEST = 1 << 20
"""Bytes; the shipped one has some thirty thousand."""
LONGEST_VERSION = 100
"""Characters: reasons carry the version."""
SHIPPED = Path(__file__).with_name("regions.onnx")


class PolicyError(ValueError):
    """The policy cannot be asked, and why."""


@dataclass(frozen=True)
class RegionPolicy:
    """``digest``: the first 12 hexadecimal digits of the file's SHA-256."""

    version: str
    digest: str
    session: Any

    def __str__(self) -> str:
        return f"policy {self.version} (sha256 {self.digest})"

    def scores(self, regions: list[list[float]], job: list[float], allowed: list[bool]) -> list[float]:
        """The higher, the better: from what is seen of R regions and of the job, and which of them may be chosen.
        Raises PolicyError for answers that are not finite or of another number."""
        import numpy as np

        given = (regions, job, [float(each) for each in allowed])
        inputs = {name: np.array([each], np.float32) for name, each in zip(INPUTS, given, strict=True)}
        try:
            taken = {each.name: inputs[each.name] for each in self.session.get_inputs()}  # exports drop what is unused
            [found] = self.session.run([OUTPUT], taken)
        except Exception as error:  # the runtime has many kinds, with no common parent
            raise PolicyError(f"{self} does not take what a policy for regions takes") from error
        if found.shape != (1, len(regions)) or not np.isfinite(found[0][np.array(allowed)]).all():
            raise PolicyError(f"{self} does not answer with a number for each region")
        return [float(each) for each in found[0]]


def load_policy(path: Path) -> RegionPolicy:
    """The policy in ``path``. Raises PolicyError, saying what is wrong with the file and what to do."""
    # Else releases from 1.29 on tell their maker about each process and model, under a lasting id of the device.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    try:
        import onnxruntime
    except ImportError:
        raise PolicyError("no onnxruntime is installed: install ces-federation[policy]") from None
    data = _read(path)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # an answer is too short to be shared out
    options.log_severity_level = 4  # what goes wrong is said below
    try:
        session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        told = session.get_modelmeta().custom_metadata_map
    except Exception as error:  # as above
        raise PolicyError(f"{path} is no ONNX file, or not a whole one: export it again") from error
    if told.get(SCHEMA_KEY) != schema_hash():
        raise PolicyError(
            f"{path} was not trained to see what this version tells of regions ({schema_hash()}): train one by "
            "ces train imitation --env region-choice"
        )
    version = told.get(VERSION_KEY, "")
    if not 0 < len(version) <= LONGEST_VERSION or not version.isprintable():
        raise PolicyError(f"{path} has no version that could be told: export it again")
    return RegionPolicy(version, hashlib.sha256(data).hexdigest()[:12], session)


def _read(path: Path) -> bytes:
    """The file's content, within the limit whatever its reported size."""
    if path.exists() and not path.is_file():
        raise PolicyError(f"{path} is no file")  # and might never end
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise PolicyError(f"{path} cannot be read: {error.strerror or error}") from error
    if len(data) > LARGEST:
        raise PolicyError(f"{path} is too large: a policy has at most {LARGEST} bytes")
    return data
