"""Whom a policy has asked, and what becomes of one that cannot be."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from region_policies import write_policy

from ces_common.jobfile import JobFile
from ces_common.messages.regions import BidAnswer, Summary
from ces_core.learned import policy as core_policy
from ces_federation import policy as policy_module
from ces_federation.choice import MOST_ASKED, need_of
from ces_federation.chooser import ByPolicy, ByRule, Chosen, chooser
from ces_federation.policy import LARGEST, SHIPPED, PolicyError, load_policy

FILE = JobFile.model_validate(
    {
        "name": "x",
        "regions": ["any"],
        "tasks": [{"name": "w", "command": ["true"], "resources": {"cpu": "1", "memory": "1Gi"}}],
    }
)
NEED = need_of(FILE)


def summary(name: str, cpu: int, **more: Any) -> Summary:
    told = {
        "epoch": "e",
        "region": name,
        "block": "10.65.0.0/16",
        "accepts": ["default"],
        "nodes": 2,
        "free": {"cpu": cpu, "memory": 2**34},
        "total": {"cpu": 16_000, "memory": 2**35},
        "largest": {"cpu": 4000, "memory": 2**32},
    }
    return Summary.model_validate({**told, **more})


HEARD = {
    "b": summary("b", 2000),
    "c": summary("c", 9000, queued=9),
    "d": summary("d", 8000, queued=9),
    "e": summary("e", 4000),
    "f": summary("f", 16_000, accepts=[]),
}


def chosen(file: Path) -> Chosen:
    return chooser("policy", file).choose(FILE, NEED, HEARD)


def test_a_policy_orders_those_that_the_rule_does_not_refuse(tmp_path: Path) -> None:
    """Those that may have room are four, and three are asked; f has the most, and accepts nobody."""
    found = chosen(write_policy(tmp_path / "most.onnx"))
    assert (found.asked, found.final) == (["c", "d", "e"], True)
    assert chosen(write_policy(tmp_path / "least.onnx", least=True)).asked == ["b", "e", "d"]
    assert chooser("rule", None).choose(FILE, NEED, HEARD).asked == ["e", "b", "c"]


def test_its_order_decides_among_bids_with_room_and_with_the_rule_the_best_bid_does(tmp_path: Path) -> None:
    bids = {
        "c": BidAnswer(refusal="no room"),
        "d": BidAnswer(feasible=True, composite=0.2),
        "e": BidAnswer(feasible=True, composite=0.9),
    }
    assert chosen(write_policy(tmp_path / "p.onnx")).in_order(bids) == ["d", "e"]
    assert Chosen(["c", "d", "e"]).in_order(bids) == ["e", "d"]


def test_the_reason_names_the_policy_and_the_hash_of_its_file(tmp_path: Path) -> None:
    file = write_policy(tmp_path / "p.onnx", version="region-choice-0123abcd")
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    assert chosen(file).why == f"by policy region-choice-0123abcd (sha256 {digest[:12]})"
    assert chooser("rule", None).choose(FILE, NEED, HEARD).why is None


def test_with_nobody_to_choose_from_it_is_not_asked(tmp_path: Path) -> None:
    policy = chooser("policy", write_policy(tmp_path / "p.onnx", endless=True))
    assert policy.choose(FILE, NEED, {"f": HEARD["f"]}) == Chosen([])


def broken(folder: Path, how: str) -> Path:
    file = folder / f"{how}.onnx"
    if how == "garbage":
        file.write_bytes(b"no model")
    elif how == "large":
        file.write_bytes(bytes(LARGEST + 1))
    elif how == "folder":
        file.mkdir()
    elif how == "foreign":
        write_policy(file, schema="another")
    elif how == "nameless":
        write_policy(file, version="")
    return file


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("gone", "cannot be read: No such file"),
        ("garbage", "is no ONNX file"),
        ("large", "is too large"),
        ("folder", "is no file"),
        ("foreign", "was not trained to see what this version tells of regions"),
        ("nameless", "has no version"),
    ],
)
def test_a_policy_that_cannot_be_loaded_leaves_the_choice_to_the_rule_which_says_so(
    tmp_path: Path, how: str, why: str
) -> None:
    file = broken(tmp_path, how)
    with pytest.raises(PolicyError, match=why):
        load_policy(file)
    found = chosen(file)
    assert (found.asked, found.final) == (["e", "b", "c"], False)
    assert str(found.why).startswith("by the rule, since ")
    assert why in str(found.why)


def test_a_policy_that_answers_with_what_is_no_number_leaves_the_choice_to_the_rule(tmp_path: Path) -> None:
    found = chosen(write_policy(tmp_path / "p.onnx", endless=True))
    assert (found.asked, found.final) == (["e", "b", "c"], False)
    assert "policy by-hand-1" in str(found.why)
    assert "does not answer with a number for each region" in str(found.why)


def test_without_the_runtime_the_rule_chooses_and_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    found = chosen(write_policy(tmp_path / "p.onnx"))
    assert (found.asked, found.why) == (
        ["e", "b", "c"],
        "by the rule, since no onnxruntime is installed: install ces-federation[policy]",
    )


def test_the_rule_reads_no_policy(tmp_path: Path) -> None:
    assert isinstance(chooser("rule", tmp_path / "gone.onnx"), ByRule)


def test_the_shipped_policy_can_be_asked_and_says_how_it_was_made() -> None:
    shipped = chooser("policy", None)
    assert isinstance(shipped, ByPolicy)
    assert len(shipped.choose(FILE, NEED, HEARD).asked) == MOST_ASKED
    policy, card = load_policy(SHIPPED), json.loads(SHIPPED.with_name("model-card.json").read_text())
    assert (card["env"], card["version"], card["complete"]) == ("region-choice", policy.version, True)
    assert {"rule", "any order"} == card["baselines"].keys()


def test_files_carry_what_all_policies_of_ces_carry() -> None:
    """The core reads them with code of its own."""
    keys = (policy_module.SCHEMA_KEY, policy_module.VERSION_KEY, policy_module.LONGEST_VERSION)
    assert keys == (core_policy.SCHEMA_KEY, core_policy.VERSION_KEY, core_policy.LONGEST_VERSION)
