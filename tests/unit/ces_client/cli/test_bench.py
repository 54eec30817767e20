"""``ces bench``: measurements of other packages, and their small form."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest
from ces_command import ces

from ces_client.cli import plugins
from ces_client.cli.bench import BenchGroup

SOURCE = """
import typer
def slow(rounds: int = 30, loads: str = '0.5,0.9', exact: bool = True, seed: int = 42, out: str = 'results/slow'):
    \'\'\'Measure.\'\'\'
    typer.echo(f'{rounds} {loads} {exact} {seed} {out}')
def fixed(seed: int = 1, out: str = 'x'):
    typer.echo('fixed')
"""


@pytest.fixture(autouse=True)
def _measurements(tmp_path, monkeypatch):
    (tmp_path / "some_bench.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    points = {name: EntryPoint(name, f"some_bench:{name}", plugins.BENCH_GROUP) for name in ("slow", "fixed")}
    monkeypatch.setattr(plugins, "plugins", lambda group: points if group == plugins.BENCH_GROUP else {})


def test_quick_makes_a_measurement_small_and_writes_elsewhere():
    assert ces("bench", "slow").stdout == "30 0.5,0.9 True 42 results/slow\n"
    assert ces("bench", "slow", "--quick").stdout == "2 0.5 False 42 results/slow-quick\n"
    assert "--quick" in ces("bench", "slow", "--help").stdout


def test_what_is_given_counts_beside_quick():
    for words in (["--quick", "--rounds", "7"], ["--rounds", "7", "--quick", "--out", "here"]):
        assert ces("bench", "slow", *words).stdout.split()[0] == "7"
    assert ces("bench", "slow", "--out", "here", "--quick").stdout.split()[-1] == "here"


def test_what_cannot_be_made_small_has_no_quick():
    assert "No such option" in ces("bench", "fixed", "--quick", code=2).stderr


def test_every_measurement_that_is_installed_accepts_its_small_settings(monkeypatch):
    monkeypatch.undo()  # the real entry points
    for name, command in BenchGroup(name="bench").all_commands().items():
        if any(option.name == "quick" for option in command.params):
            parsed = command.make_context(name, ["--quick"]).params
            assert str(parsed["out"]).endswith("-quick")
