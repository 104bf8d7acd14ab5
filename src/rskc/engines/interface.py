"""What the solver asks of an engine.

Arrays of length n - labels, groups, costs, masks - are of the engine's own kind and stay
where the data are: in memory, on a device, on the workers of a cluster. The solver hands them on,
joins masks by ``&``, ``|`` and ``~``, multiplies costs by a number, and leaves all else to the
engine's :class:`Cases`. What has K x p numbers, or one for each run, is NumPy's.

Cases may have masses, 1 if nothing is said. Then sums, sizes, medians and what is trimmed are by
mass, and the last case that is trimmed may be so in part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    from rskc.engines.base import Sums


class Assignment(NamedTuple):
    """The nearest center of every case and what the case costs there, a row for each run."""

    labels: Any  # (runs, n) int32
    costs: Any  # (runs, n), weighted squared distances in the units of the table


class Grouping(NamedTuple):
    """Groups, the labels with -1 for a trimmed case, and the costs of the kept cases summed."""

    groups: Any  # (runs, n) int32
    within: np.ndarray  # (runs,)


class Regrouping(NamedTuple):
    """A grouping, and how many cases of each run were in another group before."""

    groups: Any  # (runs, n) int32
    within: np.ndarray  # (runs,)
    moved: np.ndarray  # (runs,)


class Moved(NamedTuple):
    """Groups after single moves, their sums, and how many moves there were."""

    groups: Any  # (runs, n) int32
    sums: Sums
    moves: np.ndarray  # (runs,)


class Descended(NamedTuple):
    """Where runs of trimmed Lloyd have ended."""

    groups: Any  # (runs, n) int32
    labels: Any  # (runs, n) int32: trimmed cases have one too
    within: np.ndarray  # (runs,)
    converged: np.ndarray  # (runs,) bool


class Farthest(NamedTuple):
    """The cases at the largest distances, and the largest distance of each run."""

    mask: Any  # (runs, n)
    distance: np.ndarray  # (runs,)


class Remaining(NamedTuple):
    """What is left of groups when the farthest cases are taken out too."""

    far: Any  # (runs, n) a mask of these cases
    kept: Any  # (runs, n) int32: groups without them
    sums: Sums  # of these groups


class Listed(NamedTuple):
    """How many cases there are of some kind, and the numbers of the first of them."""

    total: int
    first: np.ndarray

    @classmethod
    def of(cls, cases: np.ndarray) -> Listed:
        """Return a list of all of them."""
        return cls(len(cases), cases)


class Cases(Protocol):
    """What is done with arrays (runs, n) of an engine's kind; groups are -1 for a trimmed case."""

    def take(self, array: Any, runs: np.ndarray | slice) -> Any:
        """Return some of the runs."""

    def only(self, array: Any) -> Any:
        """Return the only run (1, n) as (n,)."""

    def as_run(self, array: Any) -> Any:
        """Return an array (n,) as a run (1, n)."""

    def join(self, parts: Sequence[Any]) -> Any:
        """Return the runs of all parts."""

    def without(self, groups: Any, out: Any) -> Any:
        """Return the groups with -1 for the cases of a mask (n,) or (runs, n)."""

    def trimmed(self, groups: Any) -> Any:
        """Return a mask of the cases that are in no group."""

    def sizes(self, groups: Any, K: int) -> np.ndarray:
        """Count the cases (runs, K) of each group, or sum their masses."""

    def differ(self, groups: Any, others: Any) -> np.ndarray:
        """Count the cases of each run that are in another group."""

    def keys(self, groups: Any, K: int, masks: Any = None) -> list[bytes]:
        """Return a key for each run, whatever the numbers of its groups; for its mask too."""

    def fill_empty(self, groups: Any, counts: np.ndarray, costs: Any) -> Any:
        """Give each empty group the case that costs most where it is, if it costs anything."""

    def lesser(self, costs: Any, others: Any) -> Any:
        """Return the lesser of two costs of each case and run; of seeding tables."""

    def draw(self, costs: Any, groups: Any, uniforms: np.ndarray) -> np.ndarray:
        """Draw a case for each uniform number (runs, m), among those in a group.

        In proportion to their costs; where all cost nothing, any case. Asked of the arrays of
        tables that are seeds.
        """

    def to_numpy(self, array: Any) -> np.ndarray:
        """Return an array in memory."""

    def from_numpy(self, array: np.ndarray) -> Any:
        """Return an array (n,) or (runs, n) as the engine has them."""

    def first_members(self, groups: Any, k: int, most: int) -> np.ndarray:
        """Return the numbers of the first cases of group k of the only run."""

    def masses_at(self, cases: np.ndarray) -> np.ndarray:
        """Return the masses of some cases, by their numbers."""

    def kept_shares(self, groups: Any) -> np.ndarray:
        """Return the shares of cases in groups (n,) that are kept: 1, but where trimmed in part."""

    def number(self, mask: Any) -> int:
        """Count the cases of a mask (n,), those that are trimmed in part too."""

    def count(self, mask: Any) -> float:
        """Count the cases of a mask (n,), or sum their masses."""

    def total(self, costs: Any, out: Any) -> float:
        """Sum the costs (n,) of the cases that are not in the mask."""

    def cube_roots(self, costs: Any, groups: Any, factors: np.ndarray) -> Any:
        """Return the cube roots of costs (n,), those of each group times its factor (K,) first."""

    def spread(self, costs: Any) -> tuple[float, float]:
        """Return the median of the finite costs (n,), and the median deviation from it."""


class Table(Protocol):
    """The columns that carry weight, centered: what step (a), a trimmed K-means, works on.

    Centers are given in the coordinates of the table. Groups are labels, with -1 for a trimmed
    case.
    """

    n_cases: int
    n_columns: int
    weights: np.ndarray  # (1 or runs, columns); 1 where coordinates contain them
    arrays: Cases
    work_bytes: int  # what labels, groups, costs and sums of a batch of runs may take
    rotated: bool  # coordinates of its own, in which centers of the data cannot be placed

    @property
    def mass(self) -> float:
        """Return the mass of all cases: their number, if nothing else is said of them."""

    def of_runs(self, index: np.ndarray) -> Table:
        """Return the table for some of the runs only (each may have its own weights)."""

    def assign(self, centers: np.ndarray) -> Assignment:
        """Find the nearest of the centers (runs, K, columns)."""

    def trim(self, assignment: Assignment, m: float) -> Grouping:
        """Trim the m cases of largest cost, the lower case number first where costs tie.

        Where cases have masses, m is the mass that is trimmed.
        """

    def sums(self, groups: Any, K: int) -> Sums:
        """Sum the cases of each group."""

    def shift(self, sums: Sums, before: Any, after: Any) -> np.ndarray:
        """Bring sums from one grouping to another; return how many cases changed in each run."""

    def regroup(self, assignment: Assignment, m: float, sums: Sums, before: Any) -> Regrouping:
        """Trim, and bring the sums of the groups before to those of the new ones."""

    def descend(self, centers: np.ndarray, m: float, max_iter: int, tol: float = 0.0) -> Descended:
        """Run trimmed Lloyd from each of the centers (runs, K, columns).

        A run ends when nothing in it changes, or when its within sum falls by no more than ``tol``
        of itself.
        """

    def exclude(self, groups: Any) -> Any:
        """Return groups with -1 also for cases of which nothing that has weight is observed."""

    def single_moves(self, groups: Any, K: int) -> Moved:
        """Move single cases while the within sum falls."""

    def seeding_table(self) -> Table:
        """Return the table from which starts are drawn: this one, or the same in memory."""

    def cases_at(self, positions: np.ndarray) -> np.ndarray:
        """Return the cases at positions from 0 to the mass of all, one after another by mass."""

    def cases(self, index: np.ndarray) -> np.ndarray:
        """Return the coordinates (..., columns) of some cases; of seeding tables."""

    def place(self, centers: np.ndarray) -> np.ndarray:
        """Bring centers (runs, K, p) from the space of the data into that of the table."""

    def typical_norm(self) -> float:
        """Return the weighted squared norm of a typical case."""


class Engine(Protocol):
    """The data in their frame: centered, and scaled by a power of 2."""

    n_cases: int
    n_features: int
    n_missing: int  # cells
    n_unobserved: int  # cases of which nothing is observed, which were left out
    arrays: Cases
    work_bytes: int  # what labels, groups and masks of branches side by side may take
    searchable: bool  # whether its tables can draw starts; a part of the cases always can
    weighted: bool  # whether cases have masses
    frame: Any  # what another engine needs to see other data in the same frame
    unit: float  # a squared distance of 1 in the frame, in the space of the data

    @property
    def mass(self) -> float:
        """Return the mass of all cases: their number, if nothing else is said of them."""

    def rounded(self, mass: float) -> float:
        """Return a mass in whole cases, rounded down, where masses are whole."""

    def cases_at(self, positions: np.ndarray) -> np.ndarray:
        """Return the cases at positions from 0 to the mass of all, one after another by mass."""

    def expect(self, n_clusters: int, n_trim: float) -> None:
        """Get ready for problems with so many clusters and trimmed cases."""

    def rows(self, cases: np.ndarray) -> np.ndarray:
        """Return some of the cases as they were given, in memory; NaN for a missing cell."""

    def columns_of(self, cases: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return some columns of some cases."""

    def part(self, cases: np.ndarray, masses: np.ndarray | None = None) -> Engine:
        """Return an engine for some of the cases, in the same frame.

        Where cases have masses, they may have others there.
        """

    def forget_part(self) -> None:
        """Give up what is kept of the last part: it is not needed any more."""

    def equal_weights(self) -> np.ndarray:
        """Return weights (1, p) of 1, and 0 for features that are nowhere observed."""

    def table(self, weights: np.ndarray) -> Table:
        """Return the table for weights (1 or runs, p), in double precision."""

    def rough_table(self, weights: np.ndarray) -> Table:
        """Return such a table for iterations whose last ones are made with ``table``.

        Where that could not be kept in memory, its cells may be rounded to single precision.
        """

    def compact_table(self, weights: np.ndarray) -> Table:
        """Return a table with the same distances and as few columns as possible."""

    def search_table(self, weights: np.ndarray) -> Table:
        """Return such a table in the precision that is fastest for many runs."""

    def sums(self, groups: Any, K: int) -> Sums:
        """Sum, over all features, the cases of each group (runs, n)."""

    def shift(self, sums: Sums, before: Any, after: Any) -> np.ndarray:
        """Bring such sums from one grouping to another."""

    def between(self, sums: Sums, groups: Any, weights: np.ndarray) -> np.ndarray:
        """Return B_j (runs, p) of groups with these sums, which these weights (runs, p) made."""

    def set_aside(self, groups: Any, weights: np.ndarray) -> Any:
        """Return a mask of the trimmed cases of which something that has weight is observed."""

    def farthest(self, distances: Any, m: float) -> Farthest:
        """Find the m largest of each run, the lower case number first where they tie."""

    def take_out_farthest(self, groups: Any, labels: Any, sums: Sums, m: float) -> Remaining:
        """Take the m cases that are farthest from the means of their labels out of each run.

        ``sums``, over all features, are those of the groups; they may be changed in place.
        """

    def distinct(self, most: int) -> int:
        """Count the cases that differ from one another, up to ``most``."""

    def largest_cell(self) -> float:
        """Return the largest absolute value in the data."""

    def little_seen(self, weights: np.ndarray, share: float) -> Listed:
        """List the cases of which less than this share of the weight is observed."""

    def numbers(self, cases: np.ndarray) -> np.ndarray:
        """Return the numbers that cases have in the data, unobserved ones counted."""

    def returned(self, array: Any, unobserved: Any) -> Any:
        """Return an array (n,) as the user gets it, with a value for unobserved cases."""

    def as_result(self, array: np.ndarray) -> Any:
        """Return an array that is not of length n as the user gets it."""

    def nearest(self, centers: np.ndarray, weights: np.ndarray) -> Any:
        """Return the number (n,) of the nearest of the centers (K, p), given in the space of X.

        It is what ``table(weights).assign`` finds, by weighted distance in double precision.
        """

    def squared(self, centers: np.ndarray, weights: np.ndarray) -> Any:
        """Return weighted squared distances (n, K) of all cases to centers (K, p) in the frame.

        They are in the units and the precision of the data.
        """

    def transform(self, centers: np.ndarray, weights: np.ndarray) -> Any:
        """Return their roots, also where the squares overflow the precision of the data."""

    def place(self, centers: np.ndarray) -> np.ndarray:
        """Bring centers (runs, K, p) from the space of the data into the frame."""

    def restore(self, centers: np.ndarray) -> np.ndarray:
        """Bring them back."""

    def group_medians(self, columns: np.ndarray, groups: Any, K: int) -> np.ndarray:
        """Return lower medians (runs, K, q) of groups (runs, n) in some columns, in the frame."""

    def distances(self, labels: Any, centers: np.ndarray, weights: np.ndarray | None = None) -> Any:
        """Return squared distances (runs, n) of cases to the centers of their labels, in the frame.

        They are over all features, weighted by ``weights`` (1 or runs, p) if these are given.
        """
