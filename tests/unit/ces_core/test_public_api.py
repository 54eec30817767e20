"""The names that ``import ces_core`` offers, and what importing it costs."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

import pytest

import ces_core


def test_every_public_name_can_be_imported() -> None:
    assert {name: getattr(ces_core, name).__name__ for name in ces_core.__all__} == {
        name: name for name in ces_core.__all__
    }
    assert {*ces_core.__all__, "__version__"} <= {*dir(ces_core)}


def test_a_job_is_placed_and_checked_by_public_names_alone() -> None:
    from ces_core import check, get_solver, read_instance

    instance = {
        "nodes": [{"name": "a", "cpu": 2, "memory": 2}, {"name": "b", "cpu": 2, "memory": 2}],
        "links": [{"src": "a", "dst": "b", "bandwidth": 10}],
        "job": {
            "tasks": [{"name": "t", "cpu": 1, "memory": 1}],
            "flows": [{"src": "@a", "dst": "t", "min": 1, "max": 2}],
        },
    }
    result = get_solver("best-fit").solve(read_instance(instance))
    assert result.feasible
    assert check(instance, result.to_dict()) == []


def test_the_version_is_that_of_the_installed_package() -> None:
    assert ces_core.__version__ == version("ces-core")


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        _ = ces_core.Nonsense


def test_importing_the_package_loads_no_solver() -> None:
    code = (
        "import sys, ces_core; sys.exit(any(name.startswith('ces_core.') or name == 'numpy' for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
