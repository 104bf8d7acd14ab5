"""Values as JSON and arrays: what is in a model's file, and nothing that could run.

A value is itself if JSON has it; the others are an object with one key that says what they are, so
that no dictionary of the user's can be mistaken for one of ours.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

KINDS = "biufU"  # of arrays: true and false, numbers, text
BIT_GENERATORS = (
    np.random.PCG64,
    np.random.PCG64DXSM,
    np.random.MT19937,
    np.random.Philox,
    np.random.SFC64,
)


class Unsavable(TypeError):
    """A value that has no place in a file."""


def encode(value: Any, add: Callable[[np.ndarray], str]) -> Any:
    """Return a value as JSON; ``add`` keeps an array and returns its name."""
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, np.ndarray | np.generic):
        return _encode_array(np.asarray(value), add)
    if isinstance(value, np.random.RandomState):
        return {"RandomState": encode(_state_of(value), add)}
    if isinstance(value, np.random.Generator):
        return {"Generator": encode(value.bit_generator.state, add)}
    if isinstance(value, list | tuple):
        key = "list" if isinstance(value, list) else "tuple"
        return {key: [encode(item, add) for item in value]}
    if isinstance(value, Mapping) and all(type(key) is str for key in value):
        return {"dict": {key: encode(item, add) for key, item in value.items()}}
    raise Unsavable(f"{type(value).__name__}, which a model file has no place for")


def _encode_array(array: np.ndarray, add: Callable[[np.ndarray], str]) -> dict[str, Any]:
    if array.dtype == object and array.ndim == 1:
        return {"names": [encode(_as_name(item), add) for item in array]}
    if array.dtype.kind not in KINDS:
        raise Unsavable(f"an array of {array.dtype}, which a model file has no place for")
    return {"array": add(array)}


def _as_name(item: Any) -> str | int | float | bool:
    """A name as text or number; anything else, such as a date, as its text."""
    if isinstance(item, np.generic):
        item = item.item()
    for kind in (bool, int, float):
        if isinstance(item, kind):
            return kind(item)
    return str(item)


def _state_of(random_state: np.random.RandomState) -> dict[str, Any]:
    state = random_state.get_state(legacy=False)
    if state["bit_generator"] != "MT19937":
        raise Unsavable(f"a RandomState of {state['bit_generator']}")
    return {
        "key": state["state"]["key"],
        "position": int(state["state"]["pos"]),
        "has_gauss": int(state["has_gauss"]),
        "gauss": float(state["gauss"]),
    }


def decode(value: Any, get: Callable[[str], np.ndarray]) -> Any:
    """Return the value of a piece of JSON; ``get`` returns an array by its name."""
    if not isinstance(value, dict):
        if value is None or type(value) in (bool, int, float, str):
            return value
        raise ValueError(f"a {type(value).__name__} stands where a value is expected")
    ((kind, content),) = value.items()
    return DECODERS[kind](content, get)


def _decode_names(content: Any, get: Any) -> np.ndarray:
    names = np.empty(len(content), object)
    names[:] = [decode(item, get) for item in content]
    return names


def _decode_state(content: Any, get: Any) -> np.random.RandomState:
    state = decode(content, get)
    random_state = np.random.RandomState(0)
    legacy = ("MT19937", state["key"], state["position"], state["has_gauss"], state["gauss"])
    random_state.set_state(legacy)
    return random_state


def _decode_generator(content: Any, get: Any) -> np.random.Generator:
    state = decode(content, get)
    kinds = {kind.__name__: kind for kind in BIT_GENERATORS}
    made = kinds[state["bit_generator"]](0)
    made.state = state
    return np.random.Generator(made)


def _decode_float(content: Any, get: Any) -> float:
    return {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[content]


DECODERS: dict[str, Callable[[Any, Any], Any]] = {
    "float": _decode_float,
    "array": lambda content, get: get(content),
    "names": _decode_names,
    "list": lambda content, get: [decode(item, get) for item in content],
    "tuple": lambda content, get: tuple(decode(item, get) for item in content),
    "dict": lambda content, get: {key: decode(item, get) for key, item in content.items()},
    "RandomState": _decode_state,
    "Generator": _decode_generator,
}


def pack(array: np.ndarray) -> bytes:
    """An array in NumPy's format."""
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


def unpack(data: bytes) -> Any:
    """The array, or the number if it has no axes; refused if its size is not that of its bytes."""
    buffer = io.BytesIO(data)
    if np.lib.format.read_magic(buffer) != (1, 0):
        raise ValueError("an array is of another version of NumPy's format")
    shape, _, dtype = np.lib.format.read_array_header_1_0(buffer)
    if dtype.kind not in KINDS or dtype.itemsize == 0:
        raise ValueError(f"an array is of type {dtype}")
    # Before anything is allocated: a header may promise more than there is.
    if math.prod(shape) * dtype.itemsize != len(data) - buffer.tell() or min(shape, default=0) < 0:
        raise ValueError(f"an array is not of its shape {shape}")
    buffer.seek(0)
    return np.lib.format.read_array(buffer, allow_pickle=False)[()]
