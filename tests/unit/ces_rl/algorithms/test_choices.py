"""What numbers of an actor mean as actions."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ces_rl.algorithms.choices import OneHot, Scalar

pytestmark = pytest.mark.needs("torch")
ALL = np.ones((1, 5), np.bool_)


def test_one_number_falls_into_a_bin() -> None:
    scalar = Scalar(5)
    assert scalar.centres == pytest.approx([-0.8, -0.4, 0.0, 0.4, 0.8])
    for number, action in ((-9.0, 0), (-0.8, 0), (-0.5, 1), (0.0, 2), (0.5, 3), (9.0, 4)):
        assert int(scalar.scores(torch.tensor([[number]])).argmax()) == action
        raw = np.array([[number]], np.float32)
        assert scalar.explored(raw, ALL, 0.0, np.random.default_rng(0)).tolist() == [action]
    assert scalar.vector(np.array([3])).tolist() == [[pytest.approx(0.4)]]


def test_where_an_action_is_not_allowed_its_neighbour_is_taken() -> None:
    scalar, mask = Scalar(5), np.array([[True, True, False, False, True]])
    assert scalar.explored(np.zeros((1, 1), np.float32), mask, 0.0, np.random.default_rng(0)).tolist() == [1]
    assert scalar.target(torch.zeros(1, 1), torch.from_numpy(mask)).item() == pytest.approx(-0.4)


def test_scores_choose_the_most_that_is_allowed() -> None:
    choice, mask = OneHot(3), np.array([[True, True, False]])
    raw = np.array([[0.0, 1.0, 5.0]], np.float32)
    assert choice.explored(raw, mask, 0.0, np.random.default_rng(0)).tolist() == [1]
    assert choice.target(torch.from_numpy(raw), torch.from_numpy(mask)).tolist() == [[0.0, 1.0, 0.0]]
    assert choice.vector(np.array([2, 0])).tolist() == [[0, 0, 1], [1, 0, 0]]


def test_noise_draws_only_what_is_allowed() -> None:
    rng, mask = np.random.default_rng(0), np.tile([True, False, True, False, True], (300, 1))
    for choice, raw in ((OneHot(5), np.zeros((300, 5), np.float32)), (Scalar(5), np.zeros((300, 1), np.float32))):
        assert set(choice.explored(raw, mask, 1.0, rng).tolist()) == {0, 2, 4}


def test_gradients_come_through_a_choice() -> None:
    mask = torch.tensor([[True, True, False]])
    raw = torch.tensor([[0.0, 1.0, 9.0]], requires_grad=True)
    action = OneHot(3).differentiable(raw, mask, torch.zeros(1, 3))
    assert action.tolist() == [[pytest.approx(0.0, abs=1e-6), pytest.approx(1.0), pytest.approx(0.0, abs=1e-6)]]
    (action * torch.tensor([[1.0, 0.0, 0.0]])).sum().backward()
    assert raw.grad is not None
    assert raw.grad[0, 0] > 0 > raw.grad[0, 1]
    assert raw.grad[0, 2] == 0
    number = torch.zeros(1, 1, requires_grad=True)
    Scalar(3).differentiable(number, mask, torch.zeros(1, 3)).sum().backward()
    assert number.grad is not None
    assert number.grad.item() == pytest.approx(1.0)
