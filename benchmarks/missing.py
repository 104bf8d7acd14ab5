"""Missing values: against the complete table, and against R's RSKC."""

from unittest.mock import patch

from benchmarks.data import Work, with_missing
from benchmarks.declare import Rows, benchmark
from benchmarks.timing import best_of
from rskc.engines.memory import MemoryEngine

WORKS = (
    Work(300, 1000, 3, 50, n_init=100, trim=0.1, l1_bound=6.0, outliers=0.05, rskc=2.41),
    Work(100_000, 50, 10, 10, n_init=10),
    Work(100_000, 50, 10, 10, n_init=10, trim=0.1, l1_bound=3.0),
)


@benchmark(
    "Missing values (complete: without rotation of wide tables)",
    "5% missing, one thread | complete s {:.3f} | missing s {:.3f} | ratio {:.1f} | "
    "faster than RSKC {:.1f}x",
)
def missing(repeats: int = 3) -> Rows:
    for work in WORKS:
        X, model = work.data(), work.model()
        incomplete = with_missing(X)

        def fit_by_columns() -> None:
            """Fit with tables of columns only, as missing values need them."""
            with patch.object(MemoryEngine, "_can_rotate", lambda *_: False):
                model.fit(X)  # noqa: B023

        complete, lacking = best_of(repeats, fit_by_columns, lambda: model.fit(incomplete))  # noqa: B023
        faster = work.rskc and work.rskc / lacking
        yield str(work), complete, lacking, lacking / complete, faster
