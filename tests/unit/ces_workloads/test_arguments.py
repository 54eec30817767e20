"""What the training program says of arguments that nobody can train with."""

from __future__ import annotations

import signal

import pytest

from ces_workloads.train import main


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--seed", "-1"),
        ("--lr", "nan"),
        ("--lr", "inf"),
        ("--lr", "-0.1"),
        ("--rendezvous-timeout", "nan"),
        ("--rendezvous-timeout", "1e300"),
        ("--rendezvous-timeout", "0"),
    ],
)
def test_a_bad_number_is_named_with_status_2(option: str, value: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as refusal:
        main(["--algorithm", "ring", option, value])
    signal.signal(signal.SIGTERM, before)
    assert refusal.value.code == 2
    assert f"argument {option}: {value} is not" in capsys.readouterr().err
