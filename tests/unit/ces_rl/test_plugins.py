"""A new environment is one file and an entry point, an algorithm too: a toy that is registered here learns."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest

from ces_rl import plugins
from ces_rl.run import Run, train


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The toy environment, a toy algorithm, and some that are broken, as an installed package would bring them."""
    own = {
        plugins.ENVS: {"toy": "toy_learning:Toy", "gone": "no_such_module:Env", "nothing": "toy_learning:PLAIN"},
        plugins.ALGORITHMS: {"guess": "toy_learning:Guess"},
    }
    real = plugins.points

    def points(group: str) -> dict[str, EntryPoint]:
        return real(group) | {name: EntryPoint(name, value, group) for name, value in own[group].items()}

    monkeypatch.setattr(plugins, "points", points)


@pytest.mark.needs("torch")
@pytest.mark.parametrize(
    ("algorithm", "settings"),
    [
        ("ppo", {"updates": 15, "problems": 64, "minibatch_size": 64, "learning_rate": (0.02, 0.02)}),
        ("cem", {"updates": 6, "draws": 20}),
        ("es", {"updates": 25, "pairs": 6}),
        ("guess", {"updates": 20}),
    ],
)
def test_a_toy_environment_is_learned(
    algorithm: str, settings: dict[str, object], registered: None, tmp_path: Path
) -> None:
    import onnxruntime

    card = train(Run.make(algorithm, "toy", 1, settings, {"actions": 4}, tmp_path))
    before, now = (card[which]["greedy"]["validation"]["return"] for which in ("before learning", "scores"))
    assert now > before
    assert now > 0.6
    assert card["settings"]["env"] == {"actions": 4}
    session = onnxruntime.InferenceSession(tmp_path / "policy.onnx", providers=["CPUExecutionProvider"])
    hidden = np.eye(4, dtype=np.float32)
    scores = session.run(None, {"observation": hidden, "mask": np.ones((4, 4), np.float32)})[0]
    assert np.mean(scores.argmax(axis=1) == hidden.argmax(axis=1)) >= 0.5


def test_a_broken_plugin_is_named_and_harms_no_other(registered: None) -> None:
    with pytest.raises(plugins.PluginError, match=r"environment gone is broken: no_such_module:Env: ModuleNotFound"):
        plugins.environment("gone")
    with pytest.raises(plugins.PluginError, match=r"environment nothing is broken: .* names no class with Settings"):
        plugins.environment("nothing")
    with pytest.raises(plugins.PluginError, match="there is no algorithm 'sarsa'; there are"):
        plugins.algorithm("sarsa")
    assert plugins.environment("thesis").__name__ == "Thesis"
    assert plugins.help_line(plugins.ENVS, "gone") == ""
