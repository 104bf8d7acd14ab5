"""Values as JSON and arrays: what is in a model's file, and nothing that could run.

A value is itself if JSON has it; the others are an object with one key that says what they are, so
that no dictionary of the user's can be mistaken for one of ours.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

KINDS = "biufU"  # of arrays: true and false, numbers, text
LAST_CODE_POINT = 0x10FFFF


class Unsavable(TypeError):
    """A value that has no place in a file."""


def encode(value: Any, add: Callable[[np.ndarray], str]) -> Any:
    """Return a value as JSON; ``add`` keeps an array and returns its name."""
    if value is None or type(value) in (bool, int, str):
        return value
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        if array.dtype == object and array.ndim == 1:
            return {"names": [encode(_as_name(item), add) for item in array]}
        if array.dtype.kind not in KINDS:
            raise Unsavable(f"an array of {array.dtype}, which a model file has no place for")
        return {"array": add(array)}
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Integral):  # and other kinds of numbers, such as an enumeration's
        return int(value)
    if isinstance(value, Real):
        return float(value) if math.isfinite(value) else {"float": str(float(value))}
    if isinstance(value, list | tuple):
        key = "list" if isinstance(value, list) else "tuple"
        return {key: [encode(item, add) for item in value]}
    if isinstance(value, Mapping) and all(type(key) is str for key in value):
        return {"dict": {key: encode(item, add) for key, item in value.items()}}
    raise Unsavable(f"{type(value).__name__}, which a model file has no place for")


def _as_name(item: Any) -> str | int | float | bool:
    """Return a name as text or number; anything else, such as a date, as its text."""
    if isinstance(item, np.generic):
        item = item.item()
    for kind in (bool, int, float):
        if isinstance(item, kind):
            return kind(item)
    return str(item)


def decode(value: Any, get: Callable[[str], np.ndarray]) -> Any:
    """Return the value of a piece of JSON; ``get`` returns an array by its name."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if not isinstance(value, dict):
        raise ValueError(f"a {type(value).__name__} stands where a value is expected")
    ((kind, content),) = value.items()
    match kind:
        case "array":
            return get(content)
        case "float" if content in ("nan", "inf", "-inf"):
            return float(content)
        case "list":
            return [decode(item, get) for item in content]
        case "tuple":
            return tuple(decode(item, get) for item in content)
        case "dict":
            return {key: decode(item, get) for key, item in content.items()}
        case "names":
            names = np.empty(len(content), object)
            names[:] = content
            if not all(type(name) in (bool, int, float, str) for name in names):
                raise ValueError("names are neither text nor numbers")
            return names
    raise ValueError(f"{kind!r:.40} is no kind of value")


def pack(array: np.ndarray) -> bytes:
    """Return an array in NumPy's format."""
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


def unpack(data: bytes) -> Any:
    """Return the array of these bytes, or the number if it has no axes."""
    file = io.BytesIO(data)
    if np.lib.format.read_magic(file) != (1, 0):
        raise ValueError("an array is in another version of NumPy's format")
    shape, by_columns, dtype = np.lib.format.read_array_header_1_0(file)
    start = file.tell()
    if dtype.kind not in KINDS or dtype.itemsize == 0:
        raise ValueError(f"an array is of type {dtype!r:.40}")
    # Before anything is allocated: a shape may promise more than there is.
    if math.prod(shape) * dtype.itemsize != len(data) - start:
        raise ValueError(f"an array is not of its shape {shape!r:.40}")
    flat = np.frombuffer(data, dtype, offset=start)
    codes = flat.view(dtype.str[0] + "u4") if dtype.kind == "U" else flat[:0]
    is_bad = dtype.kind == "b" and flat.view(np.uint8).max(initial=0) > 1
    if is_bad or (codes.size and codes.max() > LAST_CODE_POINT):
        raise ValueError(f"an array of {dtype} holds something else")
    return (flat.reshape(shape[::-1]).T if by_columns else flat.reshape(shape)).copy("K")[()]
