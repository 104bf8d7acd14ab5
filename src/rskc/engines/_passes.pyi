from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

BLOCK: int

def has_openmp() -> bool: ...
def max_threads() -> int: ...
def table(
    X: Array,
    columns: Array,
    location: Array,
    factor: float,
    limits: Array,
    block: int,
    n_threads: int,
    out: Array,
) -> None: ...
def scale_centers(weights: Array, centers: Array, scaled: Array, constants: Array) -> None: ...
def assign(
    X: Array,
    block: int,
    scaled: Array,
    constants: Array,
    norms: Array,
    n_threads: int,
    labels: Array,
    costs: Array,
) -> None: ...
def scale_centers_missing(
    weights: Array, centers: Array, n_threads: int, scaled: Array, starts: Array
) -> None: ...
def unseen_features(
    weights: Array, centers: Array, starts: Array, n_threads: int, columns: Array
) -> None: ...
def assign_missing(
    X: Array,
    block: int,
    scaled: Array,
    starts: Array,
    columns: Array,
    weights: Array,
    norms: Array,
    scale: Array,
    n_threads: int,
    labels: Array,
    costs: Array,
) -> None: ...
def trim(
    labels: Array, costs: Array, m: int, n_threads: int, groups: Array, kept: Array
) -> None: ...
def trim_masses(
    labels: Array,
    costs: Array,
    masses: Array,
    m: float,
    n_threads: int,
    groups: Array,
    kept: Array,
    cut: Array,
    left: Array,
) -> None: ...
def shift_masses(
    X: Array,
    block: int,
    location: Array,
    factor: float,
    masses: Array,
    before: Array,
    after: Array,
    cut_before: Array,
    left_before: Array,
    cut_after: Array,
    left_after: Array,
    n_threads: int,
    totals: Array,
    counts: Array,
    moved: Array,
) -> None: ...
def move_masses(
    X: Array,
    block: int,
    weights: Array,
    masses: Array,
    max_rounds: int,
    n_threads: int,
    groups: Array,
    totals: Array,
    counts: Array,
    moves: Array,
) -> None: ...
def move_masses_missing(
    X: Array,
    block: int,
    weights: Array,
    scale: Array,
    masses: Array,
    max_rounds: int,
    n_threads: int,
    groups: Array,
    totals: Array,
    counts: Array,
    moves: Array,
) -> None: ...
def shift_sums(
    X: Array,
    block: int,
    location: Array,
    factor: float,
    before: Array,
    after: Array,
    n_threads: int,
    totals: Array,
    counts: Array,
    moved: Array,
) -> None: ...
def own_distances(
    X: Array,
    location: Array,
    factor: float,
    weights: Array,
    labels: Array,
    centers: Array,
    n_threads: int,
    out: Array,
) -> None: ...
def own_distances_missing(
    X: Array,
    location: Array,
    factor: float,
    weights: Array,
    labels: Array,
    centers: Array,
    n_threads: int,
    out: Array,
) -> None: ...
def missing_factors(X: Array, weights: Array, n_threads: int, out: Array) -> None: ...
def row_norms(X: Array, block: int, weights: Array, n_threads: int, out: Array) -> None: ...
def single_moves(
    X: Array,
    block: int,
    weights: Array,
    max_rounds: int,
    n_threads: int,
    groups: Array,
    totals: Array,
    counts: Array,
    moves: Array,
) -> None: ...
def single_moves_missing(
    X: Array,
    block: int,
    weights: Array,
    scale: Array,
    max_rounds: int,
    n_threads: int,
    groups: Array,
    totals: Array,
    counts: Array,
    moves: Array,
) -> None: ...
def nearest_bounded(
    X: Array,
    location: Array,
    factor: float,
    columns: Array,
    weights: Array,
    limits: Array,
    centers: Array,
    n_threads: int,
    labels: Array,
    costs: Array,
) -> None: ...
def bounded_distances(
    X: Array,
    location: Array,
    factor: float,
    columns: Array,
    weights: Array,
    limits: Array,
    labels: Array,
    centers: Array,
    n_threads: int,
    out: Array,
) -> None: ...
def bounded_sums(
    X: Array,
    location: Array,
    factor: float,
    columns: Array,
    limits: Array,
    shares: Array,
    groups: Array,
    centers: Array,
    n_threads: int,
    totals: Array,
    counts: Array,
    within: Array,
) -> None: ...
def lower_medians(
    X: Array,
    location: Array,
    factor: float,
    columns: Array,
    order: Array,
    starts: Array,
    n_threads: int,
    out: Array,
) -> None: ...
