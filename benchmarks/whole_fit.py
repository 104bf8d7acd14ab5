"""The whole fit, one thread, against the seconds that R's RSKC took for as many starts."""

from benchmarks.data import Work
from benchmarks.declare import Rows, benchmark
from benchmarks.timing import best_of

# Seconds on data of the same distribution.
WORKS = (
    Work(60, 500, 3, 50, n_init=200, trim=1 / 60, l1_bound=6.2, step=1.0, rskc=0.119),
    Work(300, 1000, 3, 50, n_init=100, trim=0.1, l1_bound=6.0, outliers=0.05, rskc=0.795),
    Work(2000, 200, 5, 30, n_init=20, trim=0.1, l1_bound=5.0, outliers=0.05, rskc=0.677),
    Work(10_000, 100, 5, 20, n_init=10, trim=0.1, l1_bound=4.0, outliers=0.05, rskc=2.348),
    Work(100, 5000, 3, 100, n_init=100, trim=0.1, l1_bound=10.0, outliers=0.05, rskc=0.900),
)


@benchmark(
    "The whole fit",
    "work, one thread | RSKC ms (recorded) {:.0f} | rskc ms {:.1f} | faster {:.1f}x",
)
def whole_fit(repeats: int = 31) -> Rows:
    for work in WORKS:
        X, model = work.data(), work.model()
        (mine,) = best_of(repeats, lambda: model.fit(X))  # noqa: B023
        yield str(work), work.rskc * 1e3, mine * 1e3, work.rskc / mine
