"""A multilayer perceptron with ReLU and softmax whose parameters are one flat vector.

Pure functions over that vector: a collective can then reduce a gradient, and a digest can cover a replica,
without knowing about layers. The arithmetic follows the vector's dtype.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.floating[Any]]
Labels = NDArray[np.integer[Any]]


def as_bytes(vector: Vector) -> memoryview:
    """The memory of a contiguous vector, to be sent or filled."""
    return vector.view(np.uint8).data


def parameter_count(sizes: Sequence[int]) -> int:
    """How many parameters layers of these widths have (weights and biases)."""
    return sum(rows * columns + columns for rows, columns in pairwise(sizes))


def initial_parameters(sizes: Sequence[int], seed: int) -> Vector:
    """He-uniform weights and zero biases, float32.

    Uniform numbers come from integers alone, so that replicas on different processors begin bit-identical
    (normal ones pass through each platform's ``log`` and ``exp``).
    """
    generator = np.random.default_rng(seed)
    parameters = np.zeros(parameter_count(sizes), dtype=np.float32)
    for weights, _ in _layers(sizes, parameters):
        limit = np.float32(np.sqrt(6.0 / weights.shape[0]))
        weights[...] = (generator.random(weights.shape, dtype=np.float32) * 2 - 1) * limit
    return parameters


def loss_and_gradient(sizes: Sequence[int], parameters: Vector, images: Vector, labels: Labels) -> tuple[float, Vector]:
    """Mean cross-entropy over the batch, and its gradient as a flat vector."""
    layers = _layers(sizes, parameters)
    inputs = [images]
    for weights, bias in layers[:-1]:
        inputs.append(np.maximum(inputs[-1] @ weights + bias, 0))
    logits = inputs[-1] @ layers[-1][0] + layers[-1][1]
    log_probabilities = _log_softmax(logits)
    rows = np.arange(len(labels))
    loss = -float(log_probabilities[rows, labels].mean())

    gradient = np.empty_like(parameters)
    error = np.exp(log_probabilities)
    error[rows, labels] -= 1
    error /= len(labels)
    targets = _layers(sizes, gradient)
    for index in reversed(range(len(layers))):
        weight_gradient, bias_gradient = targets[index]
        np.matmul(inputs[index].T, error, out=weight_gradient)
        error.sum(axis=0, out=bias_gradient)
        if index:
            error = (error @ layers[index][0].T) * (inputs[index] > 0)
    return loss, gradient


def count_correct(sizes: Sequence[int], parameters: Vector, images: Vector, labels: Labels) -> int:
    """How many images get their own label as the likeliest."""
    activations = images
    layers = _layers(sizes, parameters)
    for weights, bias in layers[:-1]:
        activations = np.maximum(activations @ weights + bias, 0)
    weights, bias = layers[-1]
    return int(((activations @ weights + bias).argmax(axis=1) == labels).sum())


def _layers(sizes: Sequence[int], vector: Vector) -> list[tuple[Vector, Vector]]:
    """Views of each layer's weights and bias inside a flat vector."""
    layers = []
    start = 0
    for rows, columns in pairwise(sizes):
        middle, end = start + rows * columns, start + rows * columns + columns
        layers.append((vector[start:middle].reshape(rows, columns), vector[middle:end]))
        start = end
    return layers


def _log_softmax(logits: Vector) -> Vector:
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_probabilities: Vector = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return log_probabilities
