from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ces_workloads import model


@settings(deadline=None, max_examples=25)
@given(
    hidden=st.lists(st.integers(1, 7), min_size=0, max_size=3),
    batch=st.integers(1, 9),
    seed=st.integers(0, 2**32 - 1),
)
def test_gradient_is_the_slope_of_the_loss(hidden: list[int], batch: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    sizes = (5, *hidden, 4)
    # Non-zero biases and double precision keep the differences clear of ReLU's kinks and of rounding.
    parameters = generator.normal(size=model.parameter_count(sizes))
    images = generator.normal(size=(batch, 5))
    labels = generator.integers(0, 4, size=batch)

    _, gradient = model.loss_and_gradient(sizes, parameters, images, labels)

    step = 1e-7
    for index in generator.choice(len(parameters), size=min(20, len(parameters)), replace=False):
        losses = []
        for sign in (1, -1):
            moved = parameters.copy()
            moved[index] += sign * step
            losses.append(model.loss_and_gradient(sizes, moved, images, labels)[0])
        slope = (losses[0] - losses[1]) / (2 * step)
        assert abs(slope - gradient[index]) < 1e-5 * max(1.0, abs(slope))


def test_loss_of_an_indifferent_model_is_that_of_guessing() -> None:
    sizes = (3, 10)
    loss, _ = model.loss_and_gradient(sizes, np.zeros(model.parameter_count(sizes)), np.ones((2, 3)), np.array([1, 7]))
    assert np.isclose(loss, np.log(10))


def test_loss_stays_finite_for_confident_mistakes() -> None:
    parameters = np.array([1e4, -1e4, 0.0, 0.0], dtype=np.float32)
    loss, gradient = model.loss_and_gradient((1, 2), parameters, np.ones((1, 1), np.float32), np.array([1]))
    assert loss == 2e4
    assert np.isfinite(gradient).all()


def test_initial_parameters_depend_on_the_seed_alone() -> None:
    sizes = (64, 16, 10)
    first, again = model.initial_parameters(sizes, 7), model.initial_parameters(sizes, 7)
    assert first.dtype == np.float32
    assert first.tobytes() == again.tobytes()
    assert first.tobytes() != model.initial_parameters(sizes, 8).tobytes()
    assert np.abs(first).max() <= np.sqrt(6 / 16)


def test_counts_the_images_whose_label_is_likeliest() -> None:
    identity = np.concatenate([np.eye(3).ravel(), np.zeros(3)])
    assert model.count_correct((3, 3), identity, np.eye(3), np.array([0, 2, 2])) == 2
