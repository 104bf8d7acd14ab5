"""Kinds of tables that are not in memory as NumPy arrays."""

import numpy as np
import pandas as pd
import pytest

from skips import skip_without


def as_dask(X, rows=25):
    skip_without("dask")
    import dask.array as array

    return array.from_array(X, chunks=(rows, X.shape[1]))


def with_unknown_rows(X):
    blocks = as_dask(X)
    return blocks[blocks[:, 0] < np.inf]


def as_dask_frame(X):
    skip_without("dask")
    import dask.dataframe as frames

    named = pd.DataFrame(X, columns=[f"gene {j}" for j in range(X.shape[1])])
    return frames.from_pandas(named, npartitions=5)


def as_tensor(X):
    skip_without("array_api_compat", "torch")
    import torch

    return torch.from_numpy(X)


TABLES = {
    "array": as_dask,
    "unknown rows": with_unknown_rows,
    "column chunks": lambda X: as_dask(X).rechunk((35, 3)),
    "frame": as_dask_frame,
    "tensor": as_tensor,
}
_warns = pytest.mark.filterwarnings("ignore:X has 3 chunks of columns")
each_table = pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=_warns if kind == "column chunks" else ()) for kind in TABLES]
)
