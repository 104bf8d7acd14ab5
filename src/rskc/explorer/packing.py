"""Arrays and words in as few bytes as a page needs: packed bits, whole numbers, deflated."""

import base64
import json
import zlib
from typing import Any

import numpy as np

MISSING = 65535  # of 16 bits: a missing cell


def bits_for(n_values: int) -> int:
    """Return how many bits tell n values apart, 1 at least."""
    return max(1, int(n_values - 1).bit_length())


def packed(values: np.ndarray, bits: int) -> np.ndarray:
    """Write whole numbers (n,) one after another, each in so many bits, the lowest first."""
    each = (values[:, None].astype(np.uint32) >> np.arange(bits, dtype=np.uint32)) & 1
    return np.packbits(each.astype(np.uint8).ravel(), bitorder="little")


def scaled(values: np.ndarray, low: Any, high: Any) -> np.ndarray:
    """Write numbers from low to high as 16 bits, and what is missing as ``MISSING``."""
    width = np.where(np.asarray(high) > low, np.subtract(high, low), 1.0)
    shares = np.clip((values - low) / width, 0, 1)
    missing = np.isnan(shares)
    return np.where(missing, MISSING, np.round(np.where(missing, 0, shares) * 65534)).astype("<u2")


def parcel(words: dict[str, Any], arrays: dict[str, np.ndarray]) -> str:
    """Return words and arrays, deflated, as base64: the length of the words, these, the arrays.

    Each array begins at a place that its type can be read from.
    """
    places: dict[str, list[int]] = {}
    content = bytearray()
    for name, array in arrays.items():
        content += bytes(-len(content) % 8)
        places[name] = [len(content), array.nbytes]
        content += array.tobytes()
    text = json.dumps(
        words | {"arrays": places}, ensure_ascii=False, allow_nan=False, separators=(",", ":")
    ).encode()
    text += b" " * (-(len(text) + 8) % 8)
    whole = len(text).to_bytes(8, "little") + text + content
    return base64.b64encode(zlib.compress(whole, 9)).decode()
