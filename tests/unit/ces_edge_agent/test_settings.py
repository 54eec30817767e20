"""What an agent makes of its environment."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest
from pydantic import ValidationError

from ces_common.messages.profiles import NodeProfile, Position
from ces_edge_agent.settings import AgentSettings


def test_a_node_offers_all_that_it_has_unless_told_otherwise() -> None:
    settings = AgentSettings(node="n1")
    assert settings.node_cpu == (os.cpu_count() or 1) * 1000
    assert settings.node_memory == psutil.virtual_memory().total


def test_what_is_offered_may_be_written_as_people_write_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CES_NODE_CPU", "1.5")
    monkeypatch.setenv("CES_NODE_MEMORY", "2Gi")
    monkeypatch.setenv("CES_NODE_LABELS", "site=roof, floor=3")
    settings = AgentSettings(node="n1")
    assert (settings.node_cpu, settings.node_memory) == (1500, 2 * 2**30)
    assert settings.node_labels == {"site": "roof", "floor": "3"}


def test_no_folder_named_means_none_offered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CES_DATASETS", "")
    assert AgentSettings(node="n1").datasets is None
    monkeypatch.setenv("CES_DATASETS", str(tmp_path))
    assert AgentSettings(node="n1", state_dir=Path("/var/lib/ces-agent")).datasets == tmp_path


@pytest.mark.parametrize("folder", ["/", "//", "/..", "{}", "{}/agent", "{}/agent/logs", "{}/data/../agent", "{}/link"])
def test_the_agents_own_folder_is_never_offered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, folder: str) -> None:
    (tmp_path / "agent").mkdir()
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "agent")
    monkeypatch.setenv("CES_STATE_DIR", str(tmp_path / "agent"))
    monkeypatch.setenv("CES_DATASETS", folder.format(tmp_path))
    with pytest.raises(ValidationError, match=r"datasets\n.*must not be .*: name a folder that holds nothing but"):
        AgentSettings(node="n1")
    monkeypatch.setenv("CES_DATASETS", str(tmp_path / "data"))
    assert AgentSettings(node="n1").datasets == tmp_path / "data"


@pytest.mark.parametrize("folder", [".", "datasets", "~/datasets", " "])
def test_a_folder_is_named_wherever_the_agent_runs(monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    monkeypatch.setenv("CES_DATASETS", folder)
    with pytest.raises(ValidationError, match=r"datasets\n.*must be an absolute path, not"):
        AgentSettings(node="n1")


def test_settings_are_detected_where_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CES_NODE", "n1")
    settings = AgentSettings()
    assert settings.node_cpu >= 1000
    assert settings.node_memory > 2**20
    assert settings.node_arch


def test_settings_as_people_write_them(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "NODE": "n1",
        "NODE_CPU": "1500m",
        "NODE_MEMORY": "2Gi",
        "NODE_LABELS": "site=roof, floor=3",
        "ALLOWED_IMAGES": "a-*, b",
    }.items():
        monkeypatch.setenv(f"CES_{name}", value)
    settings = AgentSettings()
    assert (settings.node_cpu, settings.node_memory) == (1500, 2**31)
    assert settings.node_labels == {"site": "roof", "floor": "3"}
    assert settings.allowed_images == ["a-*", "b"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NODE", "a b"),
        ("NODE_LABELS", "roof"),
        ("NODE_CPU", "many"),
        ("RUNTIME", "podman"),
        ("WORKER_UIDS", "0-100"),
        ("ALLOWED_IMAGES", "ces-worker-*,*.example/train"),
        ("NODE_POSITION", "here"),
        ("NODE_POSITION", "91,0"),
        ("NODE_COVERAGE", "100"),
    ],
)
def test_settings_that_make_no_sense(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv("CES_NODE", "n1")
    monkeypatch.setenv(f"CES_{name}", value)
    with pytest.raises(ValidationError):
        AgentSettings()


def test_what_is_said_of_a_node_beyond_its_amounts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert AgentSettings(node="n1").profile is None
    for name, value in {
        "NODE_POSITION": "51.0504, 13.7373",
        "NODE_COVERAGE": "300",
        "POWER_IDLE": "3",
        "POWER_PEAK": "9",
    }.items():
        monkeypatch.setenv(f"CES_{name}", value)
    profile = AgentSettings(node="n1").profile
    assert profile == NodeProfile(position=Position(lat=51.0504, lon=13.7373), coverage=300, power=[3, 9])


def test_a_device_is_lent_where_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not AgentSettings(node="n1").lent
    for name, value in {"LENT": "true", "LENT_QUIET_S": "7200", "LENT_BELOW": "5", "RECLAIM_AT": "25"}.items():
        monkeypatch.setenv(f"CES_{name}", value)
    settings = AgentSettings(node="n1")
    assert settings.lent
    assert (settings.lending.lend_below, settings.lending.reclaim_at) == (0.05, 0.25)
    assert settings.lending.quiet_s == settings.lending.longest_quiet_s == 7200


def test_a_lent_device_keeps_some_memory_back(monkeypatch: pytest.MonkeyPatch) -> None:
    total = psutil.virtual_memory().total
    monkeypatch.setenv("CES_LENT", "true")
    assert AgentSettings(node="n1").node_memory == int(0.9 * total)
    monkeypatch.setenv("CES_NODE_MEMORY", str(total // 2))
    assert AgentSettings(node="n1").node_memory == total // 2
    monkeypatch.setenv("CES_NODE_MEMORY", str(int(0.95 * total)))
    with pytest.raises(ValueError, match="90% of its memory at most"):
        AgentSettings(node="n1")
    monkeypatch.setenv("CES_LENT", "false")
    assert AgentSettings(node="n1").node_memory == int(0.95 * total)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("RECLAIM_AT", "20", "above CES_LENT_BELOW"),
        ("RECLAIM_AT", "101", "less than or equal to 100"),
        ("LENT_BELOW", "0", "greater than 0"),
        ("LENT_QUIET_S", "0", "greater than 0"),
        ("OWNER_GROUP", "/", "below the root"),
        ("OWNER_GROUP", "a/../../b", "below the root"),
    ],
)
def test_a_loan_that_makes_no_sense_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str
) -> None:
    monkeypatch.setenv(f"CES_{name}", value)
    with pytest.raises(ValidationError, match=said):
        AgentSettings(node="n1")


def test_a_machine_without_a_word_on_its_power_has_no_model() -> None:
    assert AgentSettings(node="n1").power_model is None
    assert AgentSettings(node="n1", power_idle=5).power_model is None, "that it idles at 5 W says nothing of its peak"
    assert AgentSettings(node="n1", power_idle=5).idle_watts == 5


def test_two_numbers_or_a_curve_are_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    assert AgentSettings(node="n1", power_idle=5, power_peak=15).power_model == [5, 15]
    monkeypatch.setenv("CES_POWER_CURVE", "4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14.5")
    settings = AgentSettings(node="n1")
    assert settings.power_model == [4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14.5]
    assert settings.idle_watts == 4


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"power_curve": "1,2,3"}, "must be 11 numbers"),
        ({"power_curve": ",".join(["5"] * 11), "power_idle": 5}, "set it, or these"),
        ({"power_peak": 15}, "needs CES_POWER_IDLE"),
        ({"power_idle": 20, "power_peak": 15}, "no more than it"),
        ({"power_idle": -1}, "greater than or equal to 0"),
        ({"power_idle": "nan"}, "finite number"),
        ({"power_curve": ",".join(["5"] * 10 + ["x"])}, "valid number"),
        ({"power_idle": 1, "power_peak": 1e9}, "less than or equal to 20000"),
    ],
)
def test_a_model_that_cannot_be_is_refused(given: dict[str, object], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        AgentSettings.model_validate({"node": "n1"} | given)
