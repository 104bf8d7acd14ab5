"""Tables without clusters, whose cases lie along lines, curves and rings, or resemble neighbors."""

from collections.abc import Callable

import numpy as np


def _normal(rng: np.random.Generator, shape: tuple[int, int], share: float = 1.0) -> np.ndarray:
    return share * rng.normal(size=shape)


def _few_features(rng: np.random.Generator) -> np.ndarray:
    X = _normal(rng, (150, 40))
    X[:, :3] += rng.uniform(-4, 4, (150, 1))
    return X


def _u_shape(rng: np.random.Generator) -> np.ndarray:
    t = rng.uniform(-2, 2, 150)
    return np.c_[3 * t, 2 * t**2] @ rng.normal(size=(2, 15)) + _normal(rng, (150, 15))


def _horseshoe(rng: np.random.Generator) -> np.ndarray:
    """Species, each with a place of its own along a gradient, as in ecology."""
    t, places = rng.uniform(0, 1, (120, 1)), rng.uniform(-0.2, 1.2, 30)
    return 4 * np.exp(-((t - places) ** 2) / (2 * 0.15**2)) + _normal(rng, (120, 30), 0.4)


def _ring(rng: np.random.Generator) -> np.ndarray:
    angle, X = rng.uniform(0, 2 * np.pi, 200), _normal(rng, (200, 10), 0.5)
    X[:, 0] += 4 * np.cos(angle)
    X[:, 1] += 4 * np.sin(angle)
    return X


def _autocorrelated(rng: np.random.Generator) -> np.ndarray:
    X = _normal(rng, (150, 20))
    for i in range(1, 150):
        X[i] = 0.97 * X[i - 1] + np.sqrt(1 - 0.97**2) * X[i]
    return X


def _binary_factor(rng: np.random.Generator) -> np.ndarray:
    """Items that go by one normal factor."""
    odds = 2 * rng.normal(size=(200, 1)) + rng.normal(size=20)
    return (rng.uniform(size=(200, 20)) < 1 / (1 + np.exp(-odds))).astype(float)


GRADIENTS: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "even gradient": lambda rng: rng.uniform(-3, 3, (150, 1)) + _normal(rng, (150, 15)),
    "in 3 of 40 features": _few_features,
    "U": _u_shape,
    "horseshoe": _horseshoe,
    "ring": _ring,
    "autocorrelated cases": _autocorrelated,
    "binary factor": _binary_factor,
    "one strong factor": lambda rng: 2 * rng.normal(size=(150, 1)) + _normal(rng, (150, 15)),
    "plane": lambda rng: (
        rng.uniform(-3, 3, (200, 2)) @ rng.normal(size=(2, 20)) + _normal(rng, (200, 20))
    ),
}
