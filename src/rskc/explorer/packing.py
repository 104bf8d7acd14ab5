"""Arrays and words in as few bytes as a page needs: packed bits, whole numbers, deflated."""

from __future__ import annotations

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


class Parcel:
    """Words (JSON) and arrays behind one another, deflated, as base64."""

    def __init__(self) -> None:
        self.words: dict[str, Any] = {}
        self._places: dict[str, list[int]] = {}
        self._parts: list[bytes] = []
        self._length = 0

    def add(self, name: str, array: np.ndarray) -> None:
        """Add an array; it begins at a place that its type can be read from."""
        gap = -self._length % 8
        content = array.tobytes()
        self._parts += [bytes(gap), content]
        self._places[name] = [self._length + gap, len(content)]
        self._length += gap + len(content)

    def text(self) -> str:
        """Return all of it: the length of the words, the words, the arrays."""
        words = json.dumps(
            {**self.words, "arrays": self._places},
            ensure_ascii=False,
            allow_nan=False,
            separators=(",", ":"),
        ).encode()
        words += b" " * (-(len(words) + 8) % 8)
        content = len(words).to_bytes(8, "little") + words + b"".join(self._parts)
        return base64.b64encode(zlib.compress(content, 9)).decode()
