"""Settings that `ces up` takes: what is wrong is said before anything is started, and what is dropped is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from ces_client.errors import BadInput
from ces_core.registry import available
from ces_testbed.cli import settings
from ces_testbed.cli.settings import checked_settings, described_by_services, not_passed_on, variable


@pytest.fixture
def _services(monkeypatch: pytest.MonkeyPatch) -> None:
    """What services say, without starting them."""
    known = {"CES_TICK_S", "CES_SOLVE_TIME_LIMIT_S", "CES_HTTP_PORT", "CES_SOLVER", "CES_POLICY"}
    monkeypatch.setattr(settings, "described_by_services", lambda _: (known, []))


def refusal(*given: str, solver: str | None = None, policy: Path | None = None) -> dict[str, str]:
    with pytest.raises(BadInput) as caught:
        checked_settings(given, solver, policy)
    (error,) = caught.value.problem.errors
    return error


def test_a_setting_may_be_written_in_three_ways() -> None:
    assert {variable(key) for key in ("tick_s", "tick-s", "CES_TICK_S", "ces_tick_s ")} == {"CES_TICK_S"}


@pytest.mark.usefixtures("_services")
def test_settings_become_variables() -> None:
    assert checked_settings([], None, None) == {}
    assert checked_settings(["tick_s=0.5", "solve_time_limit_s="], "greedy", None) == {
        "CES_TICK_S": "0.5",
        "CES_SOLVE_TIME_LIMIT_S": "",
        "CES_SOLVER": "greedy",
    }


@pytest.mark.usefixtures("_services")
def test_an_unknown_setting_is_answered_with_similar_ones() -> None:
    assert refusal("tik_s=1") == {
        "field": "--set",
        "problem": "no service reads CES_TIK_S",
        "remedy": "similar: CES_TICK_S",
    }
    assert refusal("tick_s")["remedy"] == "write --set KEY=VALUE"


@pytest.mark.usefixtures("_services")
def test_what_the_cluster_decides_is_refused_with_the_option_for_it() -> None:
    assert refusal("http_port=1")["remedy"] == "use --port"


def test_services_say_themselves_what_they_read_and_what_is_wrong() -> None:
    known, wrong = described_by_services({"CES_TICK_S": "soon", "CES_SOLVE_TIME_LIMIT_S": "0.1"})
    assert {"CES_TICK_S", "CES_SOLVE_TIME_LIMIT_S", "CES_HEARTBEAT_S", "CES_NO_NUMBA"} <= known
    (text,) = wrong
    assert text.startswith("CES_TICK_S: ")


def test_services_that_do_not_say_so_in_time_are_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "ANSWER_S", 0.001)
    error = refusal("tick_s=2")
    assert error["problem"] == "no service has said within 0.001 s which it reads"


def test_a_solver_is_one_that_there_is() -> None:
    error = refusal(solver="gready")
    assert "no solver is called 'gready'" in error["problem"]
    assert error["remedy"] == "similar: greedy"
    assert checked_settings([], "greedy", None) == {"CES_SOLVER": "greedy"}


def test_a_queue_policy_is_one_that_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "described_by_services", lambda _: ({"CES_QUEUE_POLICY"}, []))
    error = refusal("queue_policy=shortest")
    assert error["problem"].startswith("CES_QUEUE_POLICY: no queue policy is called 'shortest': use one of ces-multi")
    assert checked_settings(["queue_policy=ces-multi"], None, None) == {"CES_QUEUE_POLICY": "ces-multi"}


def test_a_policy_is_a_file_that_the_solver_takes(tmp_path: Path) -> None:
    assert "there is no file" in refusal(policy=tmp_path / "none.onnx")["problem"]
    file = tmp_path / "policy.onnx"
    file.write_text("nothing of the kind")
    assert "the solver greedy asks no policy" in refusal(solver="greedy", policy=file)["problem"]
    if "imitation" in available():
        assert refusal(solver="imitation", policy=file)["field"] == "--policy"


def test_variables_of_the_shell_that_reach_no_service_are_named_with_what_to_write() -> None:
    shell = {
        "PATH": "/bin",
        "CES_URL": "http://m",
        "CES_SOLVER": "mine",
        "CES_POLICY": "x.onnx",
        "CES_TICK_S": "2",
        "CES_HTTP_PORT": "1",
    }
    lines = not_passed_on({}, shell)
    remedies = ("use --port", '--policy "$CES_POLICY"', '--solver "$CES_SOLVER"', '--set CES_TICK_S="$CES_TICK_S"')
    assert len(lines) == len(remedies)
    assert all("not passed on" in line for line in lines)
    assert [line.endswith(remedy) for line, remedy in zip(lines, remedies, strict=True)] == [True] * 4
    given = {"CES_SOLVER": "mine", "CES_POLICY": "x.onnx", "CES_TICK_S": "2"}
    assert not_passed_on(given, shell | {"CES_HTTP_PORT": ""}) == lines[:1]
    assert not_passed_on({}, {"CES_TOKEN": "secret", "CES_CONTEXT": "c"}) == []
