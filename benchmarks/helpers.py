"""What surrounds a fit: comparing labels, standardizing cases, writing results."""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.declare import Rows, benchmark
from benchmarks.timing import best_of
from rskc import RowStandardizer
from rskc.files import write_csv
from rskc.metrics import classification_error_rate as error_rate


@benchmark("Around a fit", "work | seconds {:.3f}")
def helpers(repeats: int = 3) -> Rows:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, 1_000_000)
    words = np.array(["ductal", "lobular", "mixed", "other"], object)[codes]
    wide = rng.standard_normal((78, 24_000))
    wide[::3, ::50] = np.nan
    frame = pd.DataFrame(rng.normal(size=(100_000, 7)))
    frame["case"] = [f"case {i}" for i in range(len(frame))]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.csv")
        works = {
            "error rate of 1,000,000 labels, numbers": lambda: error_rate(codes, codes),
            "error rate of 1,000,000 labels, words": lambda: error_rate(words, codes),
            "standardize 78 x 24,000, median and MAD": lambda: RowStandardizer().fit_transform(
                wide
            ),
            "write 100,000 x 8 as CSV": lambda: write_csv(frame, path),
        }
        yield from zip(works, best_of(repeats, *works.values()), strict=True)
