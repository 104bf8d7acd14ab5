"""The rules by which the solver decides what to compute, by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from rskc.engines import ArrayOps, Partitions, engine_for
from rskc.solver import Problem, alternate
from rskc.solver import search as search_module
from rskc.solver.search import search


def table(n, p, norm=1.0):
    return SimpleNamespace(n_cases=n, mass=n, n_columns=p, typical_norm=lambda: norm)


def found(within):
    none = np.zeros((1, 4), np.int32)
    return Partitions(none, none, np.array([within]), np.ones(1, bool), ArrayOps())


@pytest.mark.parametrize(("n", "n_trim", "norm"), [(10, 2, 4.0), (50, 0, 1e-6), (8, 4, 1e9)])
def test_single_precision_is_trusted_while_cases_cost_a_thousandth_of_their_norm(n, n_trim, norm):
    limit = 1e-3 * norm * (n - n_trim)
    trusts = [
        search_module._single_is_enough(table(n, 3, norm), found(within), Problem(2, n_trim))
        for within in (0.999 * limit, 1.001 * limit)
    ]
    assert trusts == [False, True]


@pytest.mark.parametrize(("apart", "precisions"), [(3, [4]), (1e5, [4, 8])])
def test_clusters_very_far_apart_are_searched_in_double_precision(monkeypatch, apart, precisions):
    seen, restart = [], search_module._restart

    def watched(table, *arguments):
        seen.append(table.blocks.itemsize)
        return restart(table, *arguments)

    monkeypatch.setattr(search_module, "_restart", watched)
    rng = np.random.default_rng(0)
    truth = np.arange(60) % 3
    X = rng.normal(size=(60, 4)) + apart * truth[:, None]
    starts = search_module.Starts(("random",), rng.random((10, 3)))
    partitions = search(engine_for(X), Problem(3), starts).partitions
    assert seen == precisions
    if apart > 3:
        assert len(set(zip(truth, partitions.labels[0], strict=True))) == 3


@pytest.mark.parametrize("between", [[np.inf, 0.0], [np.nan, 0.0]])
def test_a_state_whose_sums_overflow_loses_to_any_other(between):
    """Though what is left without its small cluster is finite."""
    problem, labels = Problem(2, n_trim=2, l1_bound=1.0), np.array([[0, 1, 1, 1, 1, 1]], np.int32)
    engine = engine_for(np.random.default_rng(0).normal(size=(6, 2)))
    partitions = Partitions(labels, labels, np.zeros(1), np.ones(1, bool), engine.arrays)

    def state_with(sums):
        engine.between = lambda *_: np.array([sums])
        return alternate.reweigh(engine, problem, partitions, [0], np.ones((1, 2)))[0][0]

    lost, usual = map(state_with, (between, [0.1, 0.0]))
    assert lost.objective == -np.inf
    assert usual.beats(lost)
    assert not lost.beats(usual)
