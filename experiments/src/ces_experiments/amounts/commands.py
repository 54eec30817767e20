"""``ces bench amounts``."""

from __future__ import annotations

from pathlib import Path

import typer

from ces_core.amounts.rules import RULES
from ces_core.amounts.settings import SETTINGS
from ces_experiments.common import options
from ces_experiments.common.command import PLOTS, Option, command


def _settings(flag: str, text: str) -> tuple[str, ...]:
    return options.names(flag, text, SETTINGS)


def _rules(flag: str, text: str) -> tuple[str, ...]:
    return options.names(flag, text, RULES)


def _policies(flag: str, text: str | None) -> tuple[Path, ...] | None:
    if text is None:
        return None
    found = tuple(Path(part.strip()) for part in text.split(",") if part.strip())
    for path in found:
        if not (path / "policy.onnx").is_file():
            raise typer.BadParameter(f"{path} holds no policy.onnx", param_hint=flag)
    return found


amounts = command(
    "amounts",
    "amounts.experiment:AMOUNTS",
    [
        Option("settings", str, "hetero_6,synthetic,synthetic_6", "of TapFinger, by name", read=_settings),
        Option("rules", str, ",".join(RULES), "to compare, separated by commas", read=_rules),
        Option(
            "policies", str | None, None, "folders of ces train mappo, separated by commas; empty: none",
            read=_policies, more={"show_default": "those that come with the core"},
        ),
        Option("rounds", int, 20, "worlds of each setting, the same for all", more=options.between(2, 10_000)),
        options.SEED(500_000, "of the first world; the next has the next"),
        PLOTS,
    ],
    help="How much tasks get: TapFinger's rules and learned policies in its settings, and the published figures.",
)  # fmt: skip
