"""Commands and measurements that other packages add."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint

import pytest
from ces_command import ces

from ces_client.cli import plugins


@pytest.fixture
def extra(tmp_path, monkeypatch):
    """Two commands of another package, one of which cannot be imported."""
    (tmp_path / "extra_ces").mkdir()
    (tmp_path / "extra_ces" / "__init__.py").write_text("raise AssertionError('imported for its help')\n")
    (tmp_path / "extra_cli.py").write_text(
        "import typer\n"
        "from ces_client.errors import bad_field\n"
        "group = typer.Typer(help='Run things.')\n"
        "@group.command()\n"
        "def one():\n    typer.echo('one')\n"
        "def greet(name: str = 'you'):\n"
        '    """Say hello,\n    politely.\n\n    More."""\n'
        "    if name == 'nobody':\n        raise bad_field('No greeting', 'name', 'is nobody', 'name somebody')\n"
        "    typer.echo(f'hello {name}')\n"
    )
    (tmp_path / "extra_ces" / "cli.py").write_text('def train():\n    """Train."""\n')
    (tmp_path / "extra_broken.py").write_text('import not_installed_anywhere\ndef broken():\n    """Break."""\n')
    monkeypatch.syspath_prepend(tmp_path)
    for module in ("extra_cli", "extra_broken"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    named = {"greet": "extra_cli:greet", "group": "extra_cli:group", "train": "extra_ces.cli:train"}
    named["broken"] = "extra_broken:broken"
    points = {name: EntryPoint(name, value, plugins.GROUP) for name, value in named.items()}
    benches = {"greet": EntryPoint("greet", "extra_cli:greet", plugins.BENCH_GROUP)}
    benches["broken"] = EntryPoint("broken", "extra_broken:broken", plugins.BENCH_GROUP)
    groups = {plugins.GROUP: points, plugins.BENCH_GROUP: benches}
    monkeypatch.setattr(plugins, "plugins", lambda group: groups[group])


@pytest.mark.usefixtures("extra")
def test_commands_of_other_packages_join_without_being_imported():
    shown = ces("--help").stdout
    for line in ("greet", "Say hello, politely.", "Run things.", "Train."):
        assert line in shown
    assert "extra_cli" not in sys.modules
    assert ces("greet", "--name", "me").stdout == "hello me\n"
    assert ces("group", "one").stdout == "one\n"
    assert "Say hello" in ces("greet", "--help").stdout
    assert "remedy: name somebody" in ces("greet", "--name", "nobody", code=2).stderr
    assert "pip install extra_broken" in ces("broken", code=2).stderr


@pytest.mark.usefixtures("extra")
def test_measurements_of_other_packages_join_without_being_imported():
    assert "Say hello, politely." in ces("bench", "--help").stdout
    assert "extra_cli" not in sys.modules
    assert ces("bench", "greet", "--name", "me").stdout == "hello me\n"
    said = ces("bench", "broken", code=2).stderr
    assert "`ces bench broken` cannot start" in said
    assert "pip install extra_broken" in said


@pytest.fixture
def faulty(extra, tmp_path, monkeypatch):
    """Entry points that are broken in every way, beside one that is well."""
    sources = {
        "raises": "raise RuntimeError('no licence')\n",
        "leaves": "raise SystemExit(3)\n",
        "torn": "def broken(:\n",
        "odd": "class Tool:\n    pass\ndef typed(x: 'Unknown'): ...\n",
    }
    for name, source in sources.items():
        (tmp_path / f"faulty_{name}.py").write_text(source)
        monkeypatch.delitem(sys.modules, f"faulty_{name}", raising=False)
    named = {"raises": "faulty_raises:x", "leaves": "faulty_leaves:x", "torn": "faulty_torn:broken"}
    named |= {"class": "faulty_odd:Tool", "typed": "faulty_odd:typed", "attribute": "faulty_odd:nothing"}
    named["absent"] = "not_installed_anywhere:x"
    points = plugins.plugins(plugins.GROUP)
    points |= {name: EntryPoint(name, value, plugins.GROUP) for name, value in named.items()}
    return named


def test_a_broken_plugin_breaks_nothing_but_itself(faulty):
    shown = " ".join(ces("--help").stdout.split())
    assert "Say hello, politely." in shown
    assert "broken: no module is named not_installed_anywhere" in shown
    assert "broken: invalid syntax in line 1 of faulty_torn" in shown
    assert ces("greet", "--name", "me").stdout == "hello me\n"
    whole = plugins.CesGroup(name="ces", commands={})
    assert set(whole.all_commands()) & set(faulty) == set()
    assert "greet" in whole.all_commands()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("raises", "broken: RuntimeError: no licence"),
        ("leaves", "broken: SystemExit: 3"),
        ("torn", "broken: SyntaxError"),
        ("class", "names a class"),
        ("typed", "broken: NameError"),
        ("attribute", "no attribute 'nothing'"),
        ("absent", "No module named 'not_installed_anywhere'"),
    ],
)
@pytest.mark.usefixtures("faulty")
def test_a_broken_plugin_says_why_when_it_is_called(name, why):
    said = ces(name, code=2).stderr
    assert f"`ces {name}` cannot start" in said
    assert why in said
    assert "remedy: " in said


def test_of_two_commands_with_one_name_the_first_installed_counts(monkeypatch):
    points = [EntryPoint("same", value, plugins.GROUP) for value in ("first:run", "second:run")]
    monkeypatch.setattr(plugins, "entry_points", lambda group: points)
    monkeypatch.setattr(plugins, "plugins", plugins.plugins.__wrapped__)  # not remembered
    assert plugins.plugins(plugins.GROUP)["same"].value == "first:run"


def test_a_command_that_other_tools_have_is_named_as_it_is_called_here():
    assert "It is `ces get nodes --watch`." in ces("top", code=2).stderr
    for name, here in plugins.CALLED_ELSEWHERE.items():
        command = [word for word in here.split() if word.islower() and not word.startswith("-")]
        ces(*command, "--help")
        assert "No such command" in ces(name, code=2).stderr
