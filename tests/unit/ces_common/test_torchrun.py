"""What torchrun is told of a malleable job, and what its command line must leave to CES."""

from __future__ import annotations

import pytest

from ces_common.torchrun import ALONE, FLAGS, WITH_VALUE, environment, flag_of_ces


def told() -> dict[str, str]:
    return environment(nodes=3, address="10.77.1.2", port=29500, rendezvous="a.2", grace=20)


def test_what_torchrun_is_told() -> None:
    assert told() == {
        "PET_NNODES": "3",
        "PET_RDZV_BACKEND": "static",
        "PET_RDZV_ENDPOINT": "",
        "PET_RDZV_ID": "a.2",
        "PET_MASTER_ADDR": "10.77.1.2",
        "PET_MASTER_PORT": "29500",
        "PET_STANDALONE": "0",
        "PET_SHUTDOWN_TIMEOUT": "20",
    }


@pytest.mark.needs("torch")
def test_the_installed_torchrun_understands_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch.distributed.run import config_from_args, parse_args

    for name, value in (told() | {FLAGS["node-rank"]: "1"}).items():
        monkeypatch.setenv(name, value)
    config, _, arguments = config_from_args(parse_args(["--nproc-per-node=2", "train.py", "--nnodes=9"]))
    assert (config.min_nodes, config.max_nodes, config.nproc_per_node) == (3, 3, 2)
    assert (config.rdzv_backend, config.rdzv_endpoint, config.run_id) == ("static", "10.77.1.2:29500", "a.2")
    assert (config.rdzv_configs["rank"], config.shutdown_timeout) == (1, 20)
    assert arguments[-2:] == ["train.py", "--nnodes=9"]


@pytest.mark.needs("torch")
def test_all_flags_of_the_installed_torchrun_are_known() -> None:
    from torch.distributed.run import get_args_parser

    flags: dict[bool, set[str]] = {True: set(), False: set()}
    for action in get_args_parser()._actions:
        names = {name[2:].replace("_", "-") for name in action.option_strings if name.startswith("--")}
        flags[action.nargs is None] |= names
    assert flags == {True: WITH_VALUE, False: ALONE - {"use-env"}}


@pytest.mark.parametrize(
    ("command", "flag"),
    [
        (["torchrun", "--nnodes=1:4", "train.py"], "--nnodes"),
        (["/opt/venv/bin/torchrun", "--nproc-per-node", "2", "--nnodes", "1:4", "-m", "train"], "--nnodes"),
        (["python", "-m", "torch.distributed.run", "--rdzv_backend=c10d", "train.py"], "--rdzv_backend"),
        (["env", "A=1", "torchrun", "--standalone", "train.py"], "--standalone"),
        (["torchrun", "--max-restarts=3", "train.py", "--nnodes=4"], None),
        (["torchrun", "-m", "train", "--master-port", "1"], None),
        (["torchrun", "train.py"], None),
        (["torchrun", "--nnode=1:4", "train.py"], "--nnode"),
        (["torchrun", "--rdzv_b", "c10d", "train.py"], "--rdzv_b"),
        (["torchrun", "--rdzv-conf", "a=1", "-t", "3", "--tee=3", "-r3", "-m", "--node-rank", "1", "t"], "--node-rank"),
        (["python", "-u", "-X", "dev", "-m", "torch.distributed.launch", "--nnodes=2", "t.py"], "--nnodes"),
        (["/usr/bin/python3.12", "/opt/venv/bin/torchrun", "--master-port", "1", "t.py"], "--master-port"),
        (["/usr/bin/env", "torchrun", "--nnodes=2", "t.py"], "--nnodes"),
        (["python", "run.py", "--launcher", "torchrun", "--master-port", "29500"], None),
        (["python", "run.py", "-m", "torch.distributed.run", "--nnodes", "2"], None),
        (["python", "-m", "train", "torchrun", "--nnodes", "2"], None),
        (["torchrun", "--no-python", "./train", "--nnodes", "3"], None),
        (["torchrun", "--role", "a", "/opt/train", "--master-port", "5"], None),
        (["torchrun", "--", "train", "--nnodes=2"], None),
        (["torchrun", "--r=1", "train"], None),
        (["torchrun", "--role"], None),
        (["python", "-m"], None),
        (["env"], None),
        (["python", "train.py", "--nnodes=4"], None),
        ([], None),
    ],
)
def test_flags_that_would_overrule_it_are_found(command: list[str], flag: str | None) -> None:
    assert flag_of_ces(command) == flag
