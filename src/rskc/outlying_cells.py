"""Outlying cells (prototype)."""
from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from rskc.automatic import (Features, Found, LAST_CUTOFF, _Clusters, _n_enough, _not_set_aside, _of_part, _over_trimmed,
    _sample, CLEAN_TRIM, TAIL_TRIM, mass_of, Wishes, _as_warm, _far)
from rskc.engines import Engine, engine_for
from rskc.engines.bounded import BoundedEngine
from rskc.feature_tests import cases_to_rank, group_tests, rank_tests, ranks_of
from rskc.medians import MAD_FACTOR, column_medians
from rskc.outliers import distances_of, far_cases
from rskc.reweighting import reweight
from rskc.solver import GivenStarts, Problem, Solution, solve, solve_near

CUTOFF = 3.3
CAP = False
RERANK = True
CLIP = 3.0
B, C, Q1, Q2 = 1.5, 4.0, 1.541, 0.8623


class Columns(NamedTuple):
    medians: np.ndarray
    scales: np.ndarray  # 0 for none

    @classmethod
    def of(cls, rows):
        medians = column_medians(rows)
        scales = MAD_FACTOR * column_medians(np.abs(rows - medians))
        return cls(medians, scales)


def clipped(rows, columns):
    reach = np.where(columns.scales > 0, CLIP * columns.scales, np.inf)
    return np.clip(rows, columns.medians - reach, columns.medians + reach)


def wrapped(rows, columns):
    scales = np.where(columns.scales > 0, columns.scales, 1.0)
    z = (rows - columns.medians) / scales
    size = np.abs(z)
    bent = np.where(size < B, z, np.where(size < C, np.sign(z) * Q1 * np.tanh(Q2 * (C - size)), 0.0))
    return np.where(columns.scales > 0, columns.medians + scales * bent, rows)


def first_clusters(few, problem, starts, wishes):
    kept = np.arange(few.n_cases)
    if wishes.trim:
        kept = _not_set_aside(few, _over_trimmed(few, problem, starts))
        starts = _of_part(starts, few, few, kept)
    clean = few if len(kept) == few.n_cases else few.part(kept)
    if wishes.trim:
        share = max(CLEAN_TRIM, TAIL_TRIM * (1 - clean.mass / few.mass))
        n_trim = min(mass_of(share, clean), clean.rounded(clean.mass) - problem.n_clusters)
        problem = replace(problem, n_trim=n_trim)
    solution = solve(clean, problem, starts)
    members = np.full(few.n_cases, -1, np.int32)
    own = solution.labels.copy(); own[solution.trimmed_weighted] = -1
    members[kept] = own
    return members, solution


def scales_of(rows, members, centers, has_scale, cutoff):
    kept = members >= 0
    r = np.abs(rows[kept] - centers[members[kept]])
    r = np.sort(r, axis=0)
    m = len(r) - np.isnan(r).sum(0)
    K = len(centers)
    mad = np.take_along_axis(r, (m // 2).clip(0, len(r)-1)[None], 0)[0] * MAD_FACTOR * np.sqrt(len(r) / max(len(r) - K, 1))
    q75 = np.take_along_axis(r, (m * 3 // 4).clip(0, len(r)-1)[None], 0)[0]
    s = np.maximum(mad, q75 / cutoff) if CAP else mad
    return np.where(has_scale & (s > 0), s, np.inf)


class State(NamedTuple):
    engine: Any
    problem: Problem
    solution: Solution
    tests: Any
    scales: np.ndarray
    rounds: int


def alternate(few, rows, ranks, problem, wishes, members, weights, has_scale, cutoff):
    K = problem.n_clusters
    medians = few.group_medians(np.arange(few.n_features), members[None], K)
    centers = few.restore(medians)[0]
    n_before, labels_before, tests = None, None, None
    warm = None
    out = np.zeros(few.n_cases, bool)
    for round_ in range(10):
        scales = scales_of(rows, members, centers, has_scale, cutoff)
        engine = BoundedEngine(few, cutoff * scales)
        if wishes.bound:
            if RERANK:
                all_labels = members if round_ == 0 else solution.labels
                far = np.abs(rows - centers[all_labels]) > cutoff * scales
                far[all_labels < 0] = False
                ranks = ranks_of(np.where(far, np.nan, rows))
            tests = rank_tests(ranks, members, K)
            n = max(int(tests.passed().sum()), 1)
            problem = replace(problem, l1_bound=None, n_features=n)
            if round_ == 0:
                from rskc.solver.weights import weigh
                g = few.arrays.as_run(members)
                s = engine.sums(g, K)
                weights = weigh(problem, engine.between(s, g, weights[None])[0])
        if wishes.trim or wishes.reweight:
            solution = reweight(engine, problem, centers, weights, LAST_CUTOFF, members)
        else:
            solution = solve_near(engine, problem, [warm or Warm(members.clip(0), members < 0, weights)])
        now = (problem.n_features, solution.labels.tobytes())
        members = np.where(solution.trimmed_weighted | solution.trimmed_unweighted, -1, solution.labels).astype(np.int32)
        centers, weights = solution.centers, solution.weights
        if now == n_before:
            break
        n_before = now
    return State(engine, problem, solution, tests, scales, round_ + 1)


def within_of(state, columns_scales, mask, cutoff):
    engine = BoundedEngine(state.engine._engine, cutoff * np.where(columns_scales > 0, columns_scales, np.inf))
    sol = state.solution
    w = np.where(mask & (columns_scales > 0), 1 / np.maximum(columns_scales, 1e-300) ** 2, 0.0)[None]
    d = engine.distances(engine.arrays.as_run(sol.labels), engine.place(sol.centers[None]), w)
    return float(d.sum())


def solve_with_cells(engine, problem, starts, wishes, cutoff=CUTOFF, log=False):
    few = engine
    rows = few.rows(np.arange(few.n_cases))
    columns = Columns.of(rows)
    ranks = ranks_of(rows)
    states = []
    for look in (clipped, wrapped):
        table = engine_for(look(rows, columns), frame=few.frame, n_threads=few.n_threads)
        members, sol = first_clusters(table, problem, starts, wishes)
        states.append(alternate(few, rows, ranks, problem, wishes, members, sol.weights, columns.scales > 0, cutoff))
    mask = (states[0].solution.weights > 0) | (states[1].solution.weights > 0)
    sums = [within_of(s, columns.scales, mask, cutoff) for s in states]
    best = states[int(np.argmin(sums))]
    n_features = int((best.solution.weights > 0).sum())
    feats = None
    if wishes.bound:
        feats = Features(best.tests, n_features, n_features)
    return Found(best.solution, best.problem, feats), best, states, sums
