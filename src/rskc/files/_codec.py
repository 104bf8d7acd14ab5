"""Values as JSON and arrays: what is in a model's file, and nothing that could run.

A value is itself if JSON has it; the others are an object with one key that says what they are, so
that no dictionary of the user's can be mistaken for one of ours.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

KINDS = "biufU"  # of arrays: true and false, numbers, text
LAST_CODE_POINT = 0x10FFFF
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
    if isinstance(value, np.ndarray | np.generic):
        return _encode_array(np.asarray(value), add)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Integral):  # and other kinds of numbers, such as an enumeration's
        return int(value)
    if isinstance(value, Real):
        return float(value) if math.isfinite(value) else {"float": str(float(value))}
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
        return dict(state)
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
    if not all(type(name) in (bool, int, float, str) for name in names):
        raise ValueError("names are neither text nor numbers")
    return names


def _decode_state(content: Any, get: Any) -> np.random.RandomState:
    state = decode(content, get)
    if "bit_generator" in state:
        return _other_random_state(state)
    _check_state({"state": {"key": state["key"], "pos": state["position"]}})
    random_state = np.random.RandomState(0)
    legacy = ("MT19937", state["key"], state["position"], state["has_gauss"], state["gauss"])
    random_state.set_state(legacy)
    return random_state


def _other_random_state(state: dict[str, Any]) -> np.random.RandomState:
    """Return a RandomState that draws from another generator than its own."""
    random_state = np.random.RandomState(_bit_generator(state))
    if not math.isfinite(state["gauss"]) or state["has_gauss"] not in (0, 1):
        raise ValueError("a random state has a wrong normal number")
    random_state.set_state(state)
    return random_state


def _decode_generator(content: Any, get: Any) -> np.random.Generator:
    return np.random.Generator(_bit_generator(decode(content, get)))


def _bit_generator(state: dict[str, Any]) -> Any:
    _check_state(state)
    kinds = {kind.__name__: kind for kind in BIT_GENERATORS}
    made: Any = kinds[state["bit_generator"]](0)
    made.state = {name: part for name, part in state.items() if name not in ("has_gauss", "gauss")}
    return made


def _check_state(state: dict[str, Any]) -> None:
    """Refuse what NumPy takes unseen: places beyond a buffer, and states that stand still."""
    inner = state["state"]
    if not 0 <= inner.get("pos", 0) <= 624 or not 0 <= state.get("buffer_pos", 0) <= 4:
        raise ValueError("a random state has a place beyond its end")
    if "pos" in inner and not (inner["key"][0] >> 31 or inner["key"][1:].any()):
        raise ValueError("a random state is all 0")
    if "inc" in inner and inner["inc"] % 2 == 0:
        raise ValueError("a random state has an even increment")


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


def unpack(data: bytes, dtype: str, shape: list[int]) -> Any:
    """Return the array of this type and shape, or the number if it has no axes.

    The header must be the one that ``pack`` writes for such an array. It is compared and not
    parsed: NumPy's parser evaluates it as Python, which bad text can trip in many ways.
    """
    if not re.fullmatch(f"[<>|=][{KINDS}][0-9]{{1,9}}", dtype) or np.dtype(dtype).itemsize == 0:
        raise ValueError(f"an array is of type {dtype!r:.40}")
    if len(shape) > 32 or not all(type(length) is int and length >= 0 for length in shape):
        raise ValueError(f"an array is of shape {shape!r:.40}")
    made, start = np.dtype(dtype), 10 + int.from_bytes(data[8:10], "little")
    # Before anything is allocated: a shape may promise more than there is.
    if math.prod(shape) * made.itemsize != len(data) - start or data[:8] != b"\x93NUMPY\x01\x00":
        raise ValueError(f"an array is not of its shape {shape!r:.40}")
    text = data[10:start].decode("latin1").rstrip()
    if text not in (_header(made, shape, False), _header(made, shape, True)):
        raise ValueError("an array has a wrong header")
    flat = np.frombuffer(data, made, offset=start)
    _check_bytes(flat)
    by_columns = text == _header(made, shape, True)
    return (flat.reshape(shape[::-1]).T if by_columns else flat.reshape(shape)).copy("K")[()]


def _header(dtype: np.dtype, shape: list[int], fortran: bool) -> str:
    """Return what NumPy writes in front of an array, without the spaces that fill it up."""
    return f"{{'descr': {dtype.str!r}, 'fortran_order': {fortran}, 'shape': {tuple(shape)}, }}"


def _check_bytes(flat: np.ndarray) -> None:
    """Refuse bytes that are no value of their type."""
    if flat.dtype.kind == "b" and flat.view(np.uint8).max(initial=0) > 1:
        raise ValueError("an array of true and false holds something else")
    codes = flat.view(flat.dtype.str[0] + "u4") if flat.dtype.kind == "U" else flat[:0]
    if codes.size and codes.max() > LAST_CODE_POINT:
        raise ValueError("an array of text holds something else")
