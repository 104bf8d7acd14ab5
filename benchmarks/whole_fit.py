"""The whole fit, one thread, against the seconds that R's RSKC took for as many starts."""

import warnings

from benchmarks.data import RSKC_RUNS
from benchmarks.timing import best_of, print_table, times
from rskc import RobustSparseKMeans


def main() -> None:
    rows = []
    for name, (data, K, trim, bound, n_init, theirs) in RSKC_RUNS.items():
        X = data()
        model = RobustSparseKMeans(
            K, trim=trim, l1_bound=bound, n_init=n_init, random_state=0, n_threads=1
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            (mine,) = best_of(31, lambda: model.fit(X))  # noqa: B023
        rows.append((name, f"{theirs * 1e3:.0f}", f"{mine * 1e3:.1f}", times(theirs / mine)))
    header = ("work, one thread", "RSKC ms (recorded)", "rskc ms", "faster")
    print_table("Robust sparse K-means, the whole fit", header, rows)
