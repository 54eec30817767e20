"""Measured profiles of tasks, from a folder of data: what the setting ``testbed`` is made of."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import numpy as np

from ces_core.amounts.settings import Profiles, Setting
from ces_core.amounts.speeds import Speeds, speeds

FOLDER, FILE = "tapfinger", "profile_container_mean_s.csv"
"""Within CES_DATA_DIR. The columns are task, cpu_cores, gpus, n_runs and mean_completion_s."""


def read_profiles(file: Path) -> Profiles:
    """Raises OSError, and ValueError for a file that is no such table."""
    found: Profiles = {}
    with file.open(newline="", encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            try:
                place = int(row["cpu_cores"]), int(row["gpus"])
                table = found.setdefault(row["task"], np.full((17, 17), np.nan))
                table[place] = float(row["mean_completion_s"])
            except (KeyError, IndexError, TypeError) as error:
                raise ValueError(f"{file}: is no table of tasks, CPUs, GPUs and seconds") from error
    return found


def speeds_of(setting: Setting) -> Speeds:
    """Of a setting, read from CES_DATA_DIR where they were measured. Raises ValueError where that is not set or lacks
    them."""
    if not setting.measured:
        return speeds(setting)
    root = os.environ.get("CES_DATA_DIR")
    file = Path(root or "", FOLDER, FILE)
    if not root or not file.is_file():
        raise ValueError(f"{setting.name} needs {FOLDER}/{FILE} in CES_DATA_DIR{'' if root else ', which is not set'}")
    return speeds(setting, read_profiles(file))
