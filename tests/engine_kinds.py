"""The kinds of engine that keep the contract in test_engine_contract.py: one entry for each.

A kind makes an engine of a NumPy array, brings arrays (runs, n) to the engine and back.
"""

from importlib.util import find_spec

import numpy as np
import pytest
from scipy.sparse import csr_array

from rskc.engines import SparseEngine, engine_for, memory, passes_numpy
from rskc.engines.arrays import labels_of
from skips import skip_without

try:
    from rskc.engines import _passes
except ImportError:
    _passes = None

needs_compiler = pytest.mark.skipif(_passes is None, reason="the compiled passes are not built")
each_pass = pytest.mark.parametrize(
    "passes",
    [
        pytest.param(_passes, marks=needs_compiler, id="compiled"),
        pytest.param(passes_numpy, id="numpy"),
    ],
)


class InMemory:
    """NumPy arrays, and one of the two sets of passes."""

    def __init__(self, passes):
        self.passes = passes

    def engine(self, X, **options):
        return engine_for(np.ascontiguousarray(X), passes=self.passes, **options)

    def brought(self, engine, array):
        return array

    def numpy(self, array):
        return np.asarray(array)


class Sparse:
    """CSR matrices, whose tables are dense up to a size that is a function of their shape."""

    def __init__(self, dense_bytes):
        self.dense_bytes = dense_bytes

    def engine(self, X, missing=False, **options):
        if missing or np.isnan(X).any():
            return engine_for(csr_array(X), **options)
        return SparseEngine(csr_array(X), dense_bytes=self.dense_bytes(*X.shape), **options)

    def brought(self, engine, array):
        return array

    def numpy(self, array):
        return np.asarray(array)


class InBlocks:
    """Dask arrays, cut by a function of the number of cases, in memory or on a device."""

    def __init__(self, cut, device=None, **config):
        self.cut, self.device = cut, device
        self.config = {"scheduler": "synchronous", **config}

    def engine(self, X, **options):
        skip_without("dask", *([] if self.device is None else ["torch"]))
        import dask
        import dask.array as da

        blocks = da.from_array(X, chunks=(self.cut(len(X)), X.shape[1]))
        with dask.config.set(self.config):
            return engine_for(blocks, device=self.device, **options)

    def brought(self, engine, array):
        return engine.arrays.from_numpy(array)

    def numpy(self, array):
        if hasattr(array, "compute"):
            return array.compute(scheduler="synchronous")
        from rskc.engines.blocks.ops import CaseArray

        assert isinstance(array, CaseArray)
        return np.concatenate(array.listed(labels_of), axis=-1)


class OnDevice:
    """Arrays of a library of the array API."""

    def __init__(self, to_kind):
        self.to_kind = to_kind

    def engine(self, X, **options):
        return engine_for(self.to_kind(X), **options)

    def brought(self, engine, array):
        return engine.arrays.asarray(array)

    def numpy(self, array):
        from rskc.engines.device.ops import to_host

        return to_host(array)


def in_thirds(n):
    return tuple(len(part) for part in np.array_split(np.arange(n), 3))


def unevenly(n):
    """Blocks of one case and of none, a large one, and the rest."""
    first = min(1, n)
    most = max(0, (n - first) * 2 // 3)
    return (first, 0, most, n - first - most)


def to_strict(X):
    skip_without("array_api_compat", "array_api_strict")
    import array_api_strict

    return array_api_strict.asarray(X)


def to_tensor(X):
    skip_without("torch")
    import torch

    torch.set_num_threads(1)
    return torch.asarray(X)


def to_cuda(X):
    return to_tensor(X).cuda()


def to_cupy(X):
    import cupy

    return cupy.asarray(X)


def has_cuda(library):
    """Whether there is a CUDA device that this library can use."""
    if find_spec("torch") is None or find_spec(library) is None:
        return False
    import torch

    return torch.cuda.is_available()


# The device of tests of blocks: torch's CPU where there is no other.
DEVICE = "cuda" if has_cuda("torch") else "cpu"

KINDS = {
    "compiled": InMemory(_passes),
    "numpy": InMemory(passes_numpy),
    "sparse": Sparse(lambda n, p: 0 if n >= p else 8 * n * n),  # rotated tables are dense
    "sparse, dense tables": Sparse(lambda n, p: 2**25),
    "blocks": InBlocks(in_thirds),
    "uneven blocks": InBlocks(unevenly, scheduler="threads"),
    "nothing kept": InBlocks(in_thirds, **{"rskc.memory": "1kB"}),
    "blocks on a device": InBlocks(in_thirds, "cpu"),
    "nothing kept on it": InBlocks(unevenly, "cpu", **{"rskc.device-memory": "1kB"}),
    "nothing kept at all": InBlocks(
        in_thirds, "cpu", **{"rskc.device-memory": "1kB", "rskc.memory": "1kB"}
    ),
    "strict": OnDevice(to_strict),
    "torch": OnDevice(to_tensor),
}
if _passes is None:
    del KINDS["compiled"]
if has_cuda("torch"):
    KINDS["blocks on cuda"] = InBlocks(unevenly, "cuda", scheduler="threads")
    KINDS["cuda"] = OnDevice(to_cuda)
if has_cuda("cupy"):
    KINDS["cupy"] = OnDevice(to_cupy)


def threads_everywhere(monkeypatch, long_pass=0):
    """Give threads to passes above a size, and share all that is shared, however small."""
    monkeypatch.setattr(memory, "LONG_PASS", long_pass)
    monkeypatch.setattr(memory, "SHARED_WORK", 0)
