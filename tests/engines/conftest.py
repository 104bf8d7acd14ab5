"""What the tests of engines have in common."""

from importlib.util import find_spec

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True)
def one_blas_thread():
    """As in the estimator: passes call BLAS from threads of their own."""
    with threadpool_limits(1, "blas"):
        yield


@pytest.fixture(autouse=True)
def no_copy_unasked(monkeypatch):
    """NumPy refuses tensors on a GPU; here it refuses all, so that the CPU shows the fault too."""
    if find_spec("torch") is None:
        return
    import torch

    def refused(self, *args, **options):
        raise TypeError("a tensor was made an array unasked")

    monkeypatch.setattr(torch.Tensor, "__array__", refused)
