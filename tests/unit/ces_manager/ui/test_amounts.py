"""Why a job waits, told by nodes, and what a refused node lacks: what `ces` says, and the same numbers in Chinese."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import Any

import pytest
from cluster_state import GIB
from ui_modules import Modules

from ces_client.view.queue_status import lack_text, waiting_text
from ces_common.messages.events import Lack, QueueStatusView, Reason, Score
from ces_core.model.reason import Reason as CoreReason
from ces_core.model.reason import TooFewNodes
from ces_scheduler.job_problem import reason_of

pytestmark = pytest.mark.needs("browser")

ONE_OF_FOUR = TooFewNodes({"cpu": 900.0}, 4, 1, 1, True)
COUNTS = [
    ONE_OF_FOUR,
    TooFewNodes({"memory": 2.0 * GIB}, 3, 0, 0, True),
    TooFewNodes({"cpu": 1500.0, "memory": GIB / 2}, 3, 2, 2, True),
    TooFewNodes({"cpu": 1000.0, "gpu": 1.0}, 1, 0, 0, True),
    TooFewNodes({"cpu": 900.0}, 9, 0, 0, False),
    TooFewNodes({"cpu": 900.0}, 9, 1, 1, False),
    TooFewNodes({"cpu": 900.0}, 9, 5, 2, False),
]
REASONS = [
    reason_of(CoreReason(code, permanent, True, "cpu", 900.0, 500.0, "n3", "t", nodes=nodes))
    for nodes in COUNTS
    for code in ("cpu-total", "cpu-per-node")
    for permanent in (True, False)
]
STATUS = {"job": "j", "position": 1, "score": Score(fit=1, priority=0, waiting=0, share=0, total=1, scarce="cpu")}

# All that a template holds, as text: preact's nodes, arrays of them, and strings.
TEXT = """const text = (it) => it == null || typeof it === "boolean" ? "" : Array.isArray(it) ? it.map(text).join("")
    : typeof it === "object" ? text(it.props?.children) : String(it);
await (await load("show")).setLanguage(given.language);
"""


def said(ui: Modules, reasons: list[Reason], name: str, language: str = "en") -> list[str]:
    found = ui.run(
        f'{TEXT}const words = await load("parts/reasons"); const status = given.status;'
        f"return given.reasons.map((reason) => text(words.{name}(reason, status)));",
        reasons=[reason.model_dump(mode="json") for reason in reasons],
        status={"job": "j", "position": 1, "holders": []},
        language=language,
    )
    return [re.sub(r"\s+", " ", each).strip() for each in found]


def numbers(text: str) -> list[str]:
    return sorted(re.findall(r"[\d.]+", text))


def test_a_sentence_is_the_one_of_the_command(ui: Modules) -> None:
    for reason, shown in zip(REASONS, said(ui, REASONS, "reasonText"), strict=True):
        assert shown.split("; no job's end")[0].lower() == reason.text.lower()
    waiting = [reason for reason in REASONS if not reason.forever]
    status = QueueStatusView.model_validate(STATUS)
    for reason, shown in zip(waiting, said(ui, waiting, "waitingText"), strict=True):
        assert shown == waiting_text(reason, status, None).plain  # type: ignore[arg-type]


def test_in_chinese_it_tells_the_same_numbers(ui: Modules) -> None:
    for name in ("reasonText", "waitingText"):
        english, chinese = said(ui, REASONS, name), said(ui, REASONS, name, "zh")
        for one, other in zip(english, chinese, strict=True):
            assert re.search(r"[\u4e00-\u9fff]", other)
            assert not re.search(r"node|that|free|need", other.replace("n3", "")), other
            assert set(numbers(one)) <= set(numbers(other)) | {"1", "3"}, (one, other)


def test_a_reason_of_links_keeps_its_own_words(ui: Modules) -> None:
    narrow = Reason(code="bandwidth-per-flow", text="too narrow", resource="bandwidth", needed=12e6, where="a -> b")
    assert said(ui, [narrow], "reasonText") == ["too narrow"]
    assert said(ui, [narrow], "waitingText") == ["waits for 12 Mbit/s on a -> b"]


def test_what_a_node_lacks_is_told_with_amounts_where_they_are_known(ui: Modules) -> None:
    lacks = [Lack(resource="cpu", needed=2500, available=900), Lack(resource="memory", needed=GIB, available=GIB / 2)]
    run: dict[str, Any] = {"lacks": [each.model_dump() for each in lacks]}
    body = (
        TEXT
        + """const { whyNotText } = await load("parts/amounts");
    return [whyNotText("cpu", given.lacks), whyNotText("cordoned", []), whyNotText("cpu")];"""
    )
    assert ui.run(body, language="en", **run) == ["; ".join(map(lack_text, lacks)), "cordoned", "cpu"]
    assert ui.run(body, language="zh", **run)[0] == "需要 2.5 核，空闲 0.9 核；需要 1 GiB，空闲 512 MiB"


def test_the_message_says_what_the_core_found() -> None:
    for nodes in COUNTS:
        message = reason_of(CoreReason("packing", nodes=nodes)).nodes
        assert message is not None
        assert message.model_dump() == asdict(nodes)
