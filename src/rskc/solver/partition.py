"""Step (a): trimmed K-means by batches of restarts, then single moves on the best of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from rskc.engines import Assignment, Table
from rskc.solver.problem import Problem

# A round of single moves may take so many multiplications: a tenth of a second.
MOVE_ROUND = 100_000_000


@dataclass
class Partitions:
    """Partitions of the cases, a row for each run."""

    groups: np.ndarray  # (runs, n) int32: labels, -1 for a trimmed case
    labels: np.ndarray  # (runs, n) int32: trimmed cases have one too
    within: np.ndarray  # (runs,) weighted within sum of squares of the kept cases, table units
    converged: np.ndarray  # (runs,) bool

    @classmethod
    def allocate(cls, runs: int, n: int) -> Partitions:
        """Make room for so many runs."""
        groups, labels = np.empty((runs, n), np.int32), np.empty((runs, n), np.int32)
        return cls(groups, labels, np.empty(runs), np.ones(runs, bool))

    def __len__(self) -> int:
        return len(self.within)

    def take(self, index) -> Partitions:
        """Copy some of the runs."""
        return Partitions(*(part[index] for part in vars(self).values()))

    def replace(self, index, other: Partitions) -> None:
        """Put other runs in the place of some of these."""
        for mine, theirs in zip(vars(self).values(), vars(other).values(), strict=True):
            mine[index] = theirs

    def join(self, other: Partitions) -> Partitions:
        """Return these runs and those."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Partitions(*(np.concatenate(pair) for pair in pairs))

    def best(self, most: int) -> Partitions:
        """Return the runs of least within sum, each partition once, whatever its numbering."""
        K = int(max(self.labels.max(initial=0), self.groups.max(initial=0))) + 1
        keys, seen, chosen = partition_keys(self.groups, K), set(), []
        for run in np.argsort(self.within, kind="stable"):
            if keys[run] not in seen:
                seen.add(keys[run])
                chosen.append(run)
            if len(chosen) == most:
                break
        return self.take(np.array(chosen))


@lru_cache(maxsize=4)
def _case_numbers(n: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 2**30, n).astype(np.float64)


def partition_keys(groups: np.ndarray, K: int) -> list[bytes]:
    """Return a key for each row that does not depend on how its clusters are numbered.

    Each case has a random whole number; the sums over the clusters, sorted, are exact in float64
    and tell partitions apart.
    """
    numbers = _case_numbers(groups.shape[1])
    sums = np.array([np.bincount(row + 1, numbers, K + 1) for row in groups])
    sums[:, 1:].sort(axis=1)
    return [row.tobytes() for row in sums]


def lloyd(table: Table, centres: np.ndarray, problem: Problem) -> Partitions:
    """Trimmed K-means from each of the starting centres (runs, K, columns), all in one batch.

    A run leaves the batch when nothing in it changes, or when its within sum falls by no more than
    ``tol`` of itself.
    """
    found = Partitions.allocate(len(centres), table.n_cases)
    batch = _Batch(table, centres, problem.n_trim)
    for _ in range(problem.max_iter):
        settled = batch.step(problem.tol)
        if settled.any():
            batch.leave(settled, found)
        if len(batch.runs) == 0:
            return found
    found.converged[batch.runs] = False
    batch.leave(np.ones(len(batch.runs), bool), found)
    return found


class _Batch:
    """The runs that still move, and their sums."""

    def __init__(self, table: Table, centres: np.ndarray, n_trim: int):
        self.table, self.n_trim, self.centres = table, n_trim, centres
        self.runs = np.arange(len(centres))
        assignment = table.assign(centres)
        self.groups, self.within = table.trim(assignment, n_trim)
        self.sums = table.sums(self.groups, centres.shape[1])
        self._update_centres(assignment)

    def step(self, tol: float) -> np.ndarray:
        """Make one iteration; say which runs have settled."""
        assignment = self.table.assign(self.centres)
        groups, within = self.table.trim(assignment, self.n_trim)
        moved = self.table.shift(self.sums, self.groups, groups)
        # A sum that no longer falls goes round in ties or in rounding.
        settled = (moved == 0) | (within >= self.within * (1 - tol))
        self.groups, self.labels, self.within = groups, assignment.labels, within
        self._update_centres(assignment)
        return settled

    def leave(self, settled: np.ndarray, found: Partitions) -> None:
        """Write down the runs that have settled and go on without them."""
        done, stay = self.runs[settled], np.flatnonzero(~settled)
        found.groups[done], found.labels[done] = self.groups[settled], self.labels[settled]
        found.within[done] = self.within[settled]
        self.table, self.runs = self.table.of_runs(stay), self.runs[stay]
        self.groups, self.labels = self.groups[stay], self.labels[stay]
        self.centres, self.sums = self.centres[stay], self.sums.of_runs(stay)
        self.within = self.within[stay]

    def _update_centres(self, assignment: Assignment) -> None:
        empty = self.sums.counts == 0
        if empty.any():
            filled = _fill_empty(self.groups, self.sums.counts, assignment.costs)
            self.table.shift(self.sums, self.groups, filled)
            self.groups, empty = filled, self.sums.counts == 0
        self.centres = np.where(empty[:, :, None], self.centres, self.sums.means())


def _fill_empty(groups: np.ndarray, counts: np.ndarray, costs: np.ndarray) -> np.ndarray:
    """Give each empty cluster the kept case that costs most where it is, if it costs anything."""
    groups, costs, counts = groups.copy(), np.where(groups < 0, 0, costs), counts.copy()
    for run, k in np.argwhere(counts == 0):
        alone = counts[run, groups[run]] < 2
        case = np.where(alone, 0, costs[run]).argmax()
        if costs[run, case] > 0 and not alone[case]:
            counts[run, groups[run, case]] -= 1
            counts[run, k], costs[run, case] = 1, 0
            groups[run, case] = k
    return groups


def moves_pay(table: Table, K: int) -> bool:
    """Whether single moves can gain anything that Lloyd does not.

    A case pulls the centre of its cluster towards itself, the more the fewer cases the cluster has
    for its columns: with 2 cases a column the pull is no more than the variance of one column. For
    few cases they cost nothing; where a round takes a hundred million multiplications, too much.
    """
    few = table.n_cases < max(1000, 2 * K * table.n_columns)
    return few and table.n_cases * table.n_columns * K <= MOVE_ROUND


def improve(table: Table, groups: np.ndarray, problem: Problem) -> Partitions:
    """Improve partitions by moving single cases until no move lowers the within sum.

    Lloyd is stuck early when n is small and p large, since a case pulls its own centre towards
    itself: on the paper's clean simulation single moves bring the CER of K-means from .155 to .014.
    A partition that no single move improves is one that Lloyd does not change either, and one
    whose trimmed cases are the farthest; Lloyd is called where rounding or ties make it otherwise.
    """
    moved = groups.copy()
    sums = table.sums(moved, problem.n_clusters)
    table.single_moves(sums, moved)
    assignment = table.assign(sums.means())
    settled, within = table.trim(assignment, problem.n_trim)
    found = Partitions(settled, assignment.labels, within, np.ones(len(groups), bool))
    rest = np.flatnonzero((settled != moved).any(axis=1))
    if len(rest):
        found.replace(rest, continue_lloyd(table.of_runs(rest), settled[rest], problem))
    return found


def continue_lloyd(table: Table, groups: np.ndarray, problem: Problem) -> Partitions:
    """Lloyd's iterations from where partitions stand."""
    return lloyd(table, table.sums(groups, problem.n_clusters).means(), problem)


def repartition(table: Table, groups: np.ndarray, problem: Problem) -> Partitions:
    """Bring partitions to rest on a table: by single moves where these pay, else by Lloyd."""
    if moves_pay(table, problem.n_clusters):
        return improve(table, groups, problem)
    return continue_lloyd(table, groups, problem)
