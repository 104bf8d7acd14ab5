"""Features that share a weight.

Features that share one weight are a *group*. Each group has a weight v_g, with ``||v||_2 <= 1`` and
``||v||_1 <= s``, and each of its m features the weight ``v_g / m``: what a group brings is the mean
of B_j over its features. So a group of m copies of a feature counts like that feature alone, and
groups of noise have the same B on average whatever their size; with a sum, or one divided by the
root of m, the largest group would lead among groups of noise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np

from rskc.exceptions import ParameterError
from rskc.utils.wording import count, quoted, shortened


@dataclass(frozen=True, eq=False)
class FeatureGroups:
    """The groups of features, numbered by their first feature; a feature alone is a group of one.

    A *column* of the data is one feature, or several that code a category.
    """

    names: np.ndarray  # (groups,) object
    numbers: np.ndarray  # (p,) group of each feature
    columns: np.ndarray  # (p,) column of each feature
    masses: np.ndarray  # (p,) share of the variance of its column
    parts: np.ndarray  # (p,) of the weight of the group: 1 / number of its columns

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def _places(self) -> tuple[np.ndarray, np.ndarray]:
        """The features, one group after the other, and where each begins."""
        order = np.argsort(self.numbers, kind="stable")
        return order, np.searchsorted(self.numbers[order], np.arange(len(self)))

    @property
    def members(self) -> list[np.ndarray]:
        """The features of each group."""
        order, starts = self._places
        return np.split(order, starts[1:])

    def gather(self, between: np.ndarray) -> np.ndarray:
        """Return the between sums (..., groups) of the groups: the means over their columns."""
        order, starts = self._places
        return np.add.reduceat(np.take(between * self.parts, order, -1), starts, -1)

    def spread(self, weights: np.ndarray) -> np.ndarray:
        """Return the weights (..., p) of the features for those of the groups."""
        return np.take(weights, self.numbers, axis=-1) * self.parts

    def weights_of(self, weights: np.ndarray) -> np.ndarray:
        """Return the weights (groups,) of the groups for those of the features."""
        wholes = np.divide(weights, self.parts, out=np.zeros(len(weights)), where=self.parts > 0)
        order, starts = self._places
        return np.maximum.reduceat(wholes[order], starts)

    def observed(self, features: np.ndarray) -> FeatureGroups:
        """Return the groups where only some features (p,), a mask, have an observed cell.

        Others get no part in their group, unless none of the group is observed.
        """
        if features.all():
            return self
        _, first = np.unique(self.columns[features], return_index=True)
        # How many columns of its group are seen.
        seen = np.bincount(self.numbers[features][first], minlength=len(self))[self.numbers]
        parts = np.where(features, 1 / np.maximum(seen, 1), 0.0)
        return replace(self, parts=np.where(seen > 0, parts, self.parts))


def check_groups(given: Any, names: np.ndarray | None, p: int) -> FeatureGroups:
    """Return the groups of p features that a user gives.

    ``names`` (p,) are those of the features, if they have any.
    """
    if isinstance(given, FeatureGroups):
        if len(given.numbers) != p:
            raise _refusal(f"has {len(given.numbers)} features, and X has {p}.")
        return given
    keys = _of_mapping(given, names, p) if isinstance(given, Mapping) else _of_array(given, p)
    found: dict[tuple[str, int | None], int] = {}  # a group, or a feature alone by its number
    named = [(_feature(j, names), j) if key is None else (key, None) for j, key in enumerate(keys)]
    numbers = np.array([found.setdefault(each, len(found)) for each in named])
    labels = np.empty(len(found), object)
    labels[:] = [name for name, _ in found]
    parts = 1 / np.bincount(numbers)[numbers]
    return FeatureGroups(labels, numbers, np.arange(p), np.ones(p), parts)


def _feature(j: Any, names: np.ndarray | None) -> str:
    return f"x{j}" if names is None else names[j]


def _refusal(words: str) -> ValueError:
    return ValueError(f"feature_groups {words}")


def _of_array(given: Any, p: int) -> list[str | None]:
    """Return the name of the group of each feature, None where it is alone."""
    array = np.asarray(given, dtype=object)
    if isinstance(given, str) or array.ndim != 1:
        raise ParameterError(
            "feature_groups",
            shortened(repr(given), 60),
            "must be an array with the name of the group of each feature, or a mapping from names "
            "of groups to their features.",
        )
    if len(array) != p:
        raise _refusal(f"names the groups of {count(len(array), 'feature')}, and X has {p}.")
    return [None if _is_missing(name) else str(name) for name in array]


def _is_missing(name: Any) -> bool:
    return name is None or name == "" or name != name


def _of_mapping(given: Mapping, names: np.ndarray | None, p: int) -> list[str | None]:
    groups: list[str | None] = [None] * p
    place: dict[Any, int] = {j: j for j in range(p)}  # features are given by number or name
    place |= {} if names is None else {name: j for j, name in enumerate(names)}
    for name, features in given.items():
        members = _as_list(features)
        if not members:
            raise _refusal(f"gives no features to {str(name)!r:.60}; leave that group out.")
        unknown = [feature for feature in members if feature not in place]
        if unknown:
            which = f"names {quoted(unknown)} in {str(name)!r:.60}"
            if names is None:
                raise _refusal(f"{which}; X has no names: give numbers, 0 to {p - 1}.")
            raise _refusal(f"{which}, which X does not have.")
        for j in (place[feature] for feature in members):
            if groups[j] not in (None, str(name)):
                raise _refusal(
                    f"has feature {_feature(j, names)!r:.60} in two groups, {groups[j]!r:.60} and "
                    f"{str(name)!r:.60}; a feature has one weight: leave it out of one of them."
                )
            groups[j] = str(name)
    return groups


def as_plain(given: Any) -> Any:
    """Return groups as a user gives them, in lists and dictionaries of text and numbers."""
    if isinstance(given, FeatureGroups):
        given = given.names[given.numbers]
    if isinstance(given, Mapping):
        return {str(name): _as_list(features) for name, features in given.items()}
    return given if given is None else [None if _is_missing(n) else str(n) for n in given]


def _as_list(features: Any) -> list[str | int]:
    several = isinstance(features, Iterable) and not isinstance(features, str)
    members = features if several else [features]
    return [int(each) if isinstance(each, Integral) else str(each) for each in members]
