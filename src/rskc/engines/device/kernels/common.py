"""What the kernels share."""

from functools import wraps

import torch

# Cases of a tile, whose groups are copied, counted or trimmed by one program.
TILE = 4096


def on_its_device(function):
    """Launch kernels on the device of the first tensor: Triton takes the current one."""

    @wraps(function)
    def launched(X, *arguments):
        with torch.cuda.device_of(X):
            return function(X, *arguments)

    return launched


def unit(q):
    """Return what q is a multiple of: with 4, cells load 4 at a time, in half the (wide) time."""
    return 4 if q % 4 == 0 else 1
