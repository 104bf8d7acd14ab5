"""Fitted models in files that are safe to open, whoever made them.

A model's file is a zip archive that any tool opens: ``rskc-model.json`` describes the contents, and
the arrays are .npy files. There is no pickle in it, hence nothing that could run. It is not
compressed, so that nothing in it can be larger than the file. The archive's comment is the SHA-256
of all the bytes before it: a file of which a byte has changed, or is missing, is refused. That
digest guards against accidents; against strangers, all that is read is checked: which attributes
there are, their types and values, and that their shapes fit each other. Each array is read once:
loading takes at most 30 times the file's size, and 3 times where it is mostly arrays.
"""

import hashlib
import io
import json
import math
import os
import sys
import zipfile
from collections.abc import Mapping
from numbers import Integral, Real
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils.validation import check_is_fitted

import rskc
from rskc.engines import Frame
from rskc.estimator import RobustSparseKMeans
from rskc.inputs.arrays import model_to_numpy
from rskc.inputs.categories import CategoryEncoder
from rskc.inputs.categories import as_plain as plain_columns
from rskc.inputs.validation import check_n_threads, plain_centers
from rskc.model.fitted import ATTRIBUTES
from rskc.solver.groups import as_plain
from rskc.utils.atomic import atomic_write

FORMAT, VERSION = "rskc model", 1
CONTENTS = "rskc-model.json"
DIGEST_LENGTH = 64


class ModelFileError(ValueError):
    """A file is not a model of rskc, or a damaged one; the message is one sentence."""


class SavedModel(NamedTuple):
    """A model, and what was saved with it."""

    model: RobustSparseKMeans
    extra: dict[str, Any]
    rskc_version: str


def save(
    model: RobustSparseKMeans, path: str | os.PathLike, *, extra: Mapping[str, Any] | None = None
) -> None:
    """Save a fitted model in a file that is safe to open.

    Parameters
    ----------
    model : RobustSparseKMeans
        A fitted model. Arrays are kept bit by bit, parameters with their types; but a
        ``random_state`` that is no number becomes None. Names of cases that are neither text nor
        numbers are kept as text.
    path : str or path
        Where to; written whole or not at all.
    extra : mapping, default=None
        What else belongs to the model, such as how its data were standardized: text, numbers and
        arrays, in dictionaries, lists and tuples. ``read_model`` returns it.

    Raises
    ------
    TypeError
        If the model or ``extra`` holds what cannot be saved, such as a function in ``init``. For
        predictions it is not needed: ``model.set_params(init="auto")`` before saving.

    See Also
    --------
    load : The way back.

    Examples
    --------
    >>> import os, tempfile
    >>> from rskc import RobustSparseKMeans, load, save
    >>> model = RobustSparseKMeans(2, trim=0).fit([[0.0], [0.1], [5.0], [5.1]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, os.path.join(folder, "model.rskc"))
    ...     again = load(os.path.join(folder, "model.rskc"))
    >>> bool((again.predict([[0.2], [4.0]]) == model.predict([[0.2], [4.0]])).all())
    True
    """
    if type(model) is not RobustSparseKMeans:
        kind = type(model).__name__
        raise TypeError(f"model={kind} cannot be saved; only a RobustSparseKMeans can.")
    check_is_fitted(model, "cluster_centers_")
    data = _archive(model_to_numpy(model), {} if extra is None else dict(extra))
    with atomic_write(path) as file:
        file.write(data)


def load(path: str | os.PathLike) -> RobustSparseKMeans:
    """Load a model that ``save`` saved.

    Nothing in the file is run, whoever made it.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    model : RobustSparseKMeans

    Raises
    ------
    ModelFileError
        If it is no model, a damaged one, or one of a later version of rskc.
    """
    return read_model(path).model


def read_model(path: str | os.PathLike) -> SavedModel:
    """Load a model and the ``extra`` that was saved with it.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    saved : SavedModel
        With fields ``model``, ``extra`` and ``rskc_version``, that which wrote the file.

    Raises
    ------
    ModelFileError
        As ``load`` does.
    """
    data = _read(path)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > len(data):
                raise ValueError("its contents are larger than the file")
            contents = json.loads(archive.read(CONTENTS))
            if (contents["format"], contents["version"]) != (FORMAT, VERSION):
                raise ValueError(
                    f"it is a {contents['format']!s:.20} of version {contents['version']!s:.20}, "
                    f"written by rskc {contents['rskc']!s:.20}; this is rskc {rskc.__version__}, "
                    f"which reads version {VERSION}"
                )
            names = set(archive.namelist()) - {CONTENTS}
            return _decoded(contents, {name: unpack(archive.read(name)) for name in names})
    except Exception as error:  # zip, JSON, NumPy and the checks below: all mean the same
        words = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise _refusal(path, f"is not a model that rskc can use ({words})") from error


def _read(path: str | os.PathLike) -> bytes:
    """Return the bytes of a file, if they are those of a whole file of ours."""
    try:
        if not Path(path).is_file():
            raise _refusal(path, "is no file" if Path(path).exists() else "is not there")
        data = Path(path).read_bytes()
    except (OSError, UnicodeEncodeError) as error:
        words = getattr(error, "strerror", None) or "no file can have such a name"
        raise _refusal(path, f"cannot be opened ({words})") from error
    if not data.startswith(b"PK") or not data[30:].startswith(CONTENTS.encode()):
        raise _refusal(path, "is not a model of rskc, which has rskc-model.json in a zip archive")
    if _digest(data[:-DIGEST_LENGTH]) != data[-DIGEST_LENGTH:]:
        raise _refusal(path, "is damaged, cut short or was altered: its checksum is wrong")
    return data


def _refusal(path: str | os.PathLike, words: str) -> ModelFileError:
    return ModelFileError(f"{os.fspath(path)!r} {words}.")


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest().encode()


def _archive(model: RobustSparseKMeans, extra: dict[str, Any]) -> bytes:
    """Return the bytes of a file: an archive with its own digest at the end."""
    arrays: dict[str, np.ndarray] = {}
    params = model.get_params(deep=False)
    params["init"] = plain_centers(params["init"])
    if not isinstance(params["random_state"], Integral):  # nothing, or a state that a fit uses up
        params["random_state"] = None
    params["feature_groups"] = as_plain(params["feature_groups"])
    for name in ("categorical", "ordinal"):
        params[name] = plain_columns(params[name])
    attributes = {name: vars(model)[name] for name in ATTRIBUTES if name in vars(model)}
    attributes["_frame"] = model._frame._asdict()
    if "encoder_" in attributes:
        attributes["encoder_"] = model.encoder_.to_plain()
    if "outlying_cells_" in attributes:
        attributes["outlying_cells_"] = np.array(model.outlying_cells_.nonzero(), np.int64)
    contents: dict[str, Any] = {"format": FORMAT, "version": VERSION, "rskc": rskc.__version__}
    for part, values in (("params", params), ("attributes", attributes)):
        contents[part] = {name: _named(name, value, arrays) for name, value in values.items()}
    contents["extra"] = _named("extra", extra, arrays)
    text = json.dumps(contents, indent=1, allow_nan=False)
    try:
        _decoded(json.loads(text), {name: array[()] for name, array in arrays.items()})
    except Exception as error:  # what load would refuse
        raise ValueError(f"model cannot be saved: it could not be loaded ({error}).") from error
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.comment = b"0" * DIGEST_LENGTH
        # Without the time of day: the same model makes the same file.
        archive.writestr(zipfile.ZipInfo(CONTENTS), text.encode())
        for name, array in arrays.items():
            archive.writestr(zipfile.ZipInfo(name), pack(array))
    body = buffer.getvalue()[:-DIGEST_LENGTH]
    return body + _digest(body)


def _named(name: str, value: Any, arrays: dict[str, np.ndarray]) -> Any:
    try:
        return encode(value, arrays)
    except TypeError as error:
        remedy = "; model.set_params(init='auto') forgets it" if name == "init" else ""
        raise TypeError(f"{name} cannot be saved: it holds {error}{remedy}.") from error


def _decoded(contents: dict[str, Any], arrays: dict[str, Any]) -> SavedModel:
    """Return what the contents of a file mean."""
    params, attributes = (
        {name: decode(value, arrays) for name, value in contents[part].items()}
        for part in ("params", "attributes")
    )
    extra = decode(contents["extra"], arrays)
    if not isinstance(extra, dict):
        raise TypeError("extra is no dictionary")
    return SavedModel(checked_model(params, attributes), extra, str(contents["rskc"]))


# ---- Values

KINDS = "biufU"  # of arrays: true and false, numbers, text


def encode(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """Return a value as JSON; arrays are added to those of the file."""
    if isinstance(value, np.ndarray) and value.dtype == object and value.ndim == 1:
        return {"names": [_as_name(item) for item in value]}
    if isinstance(value, np.ndarray | np.generic) and np.asarray(value).dtype.kind in KINDS:
        name = f"arrays/{len(arrays)}.npy"
        arrays[name] = np.asarray(value)
        return {"array": name}
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, Integral):  # and other kinds of numbers, such as an enumeration's
        return int(value)
    if isinstance(value, Real):
        return float(value) if math.isfinite(value) else {"float": str(float(value))}
    if isinstance(value, list | tuple):
        key = "list" if isinstance(value, list) else "tuple"
        return {key: [encode(item, arrays) for item in value]}
    if isinstance(value, Mapping) and all(type(key) is str for key in value):
        return {"dict": {key: encode(item, arrays) for key, item in value.items()}}
    raise TypeError(f"{type(value).__name__}, which a model file has no place for")


def _as_name(item: Any) -> str | int | float | bool:
    """Return a name as text or number; anything else, such as a date, as its text."""
    if isinstance(item, np.generic):
        item = item.item()
    for kind in (bool, int, float):
        if isinstance(item, kind):
            return kind(item)
    return str(item)


def decode(value: Any, arrays: dict[str, Any]) -> Any:
    """Return the value of a piece of JSON.

    Each array is taken once: named a thousand times, it would take a thousand times its size.
    """
    if value is None or type(value) in (bool, int, float, str):
        return value
    ((kind, content),) = value.items()
    match kind:
        case "array":
            return arrays.pop(content)
        case "float" if content in ("nan", "inf", "-inf"):
            return float(content)
        case "list" | "tuple":
            items = [decode(item, arrays) for item in content]
            return items if kind == "list" else tuple(items)
        case "dict":
            return {key: decode(item, arrays) for key, item in content.items()}
        case "names" if all(type(name) in (bool, int, float, str) for name in content):
            names = np.empty(len(content), object)
            names[:] = content
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
    # Before anything is allocated: a shape may promise more than there is.
    size = math.prod(shape) * dtype.itemsize
    if dtype.kind not in KINDS or dtype.itemsize == 0 or size != len(data) - file.tell():
        raise ValueError(f"an array is not of its shape {shape!r:.40} and type {dtype!r:.40}")
    units, most = {"b": ("u1", 1), "U": ("u4", sys.maxunicode)}.get(dtype.kind, ("u1", 255))
    if np.frombuffer(data, dtype.str[0] + units, offset=file.tell()).max(initial=0) > most:
        raise ValueError(f"an array of {dtype} holds something else")
    array = np.frombuffer(data, dtype, offset=file.tell())
    return array.reshape(shape, order="F" if by_columns else "C").copy("K")[()]


# ---- A model

OF_MANY = ("feature_groups", "categorical", "ordinal", "init")  # parameters
PYTHON = ("int", "float", "list", "dict")
MAY_BE_NONE = dict.fromkeys(("l1_bound_", "cell_cutoff_"), "NoneType")
OUTPUTS = ("default", "pandas", "polars")
TEXTS = ("feature_names_in_", "group_names_", "warnings_", "warning_kinds_")
FINITE, ABOVE_0, INFINITE = sys.float_info.max, float(np.nextafter(0, 1)), float("inf")


def checked_model(params: dict[str, Any], attributes: dict[str, Any]) -> RobustSparseKMeans:
    """Return the model of parameters and attributes; ValueError if it is none that a fit makes."""
    for name, expected in ATTRIBUTES.items():
        if name not in attributes and not expected.optional:
            raise ValueError(f"{name} is missing")
    for name in set(attributes).difference(ATTRIBUTES):
        raise ValueError(f"{name!r:.60} is no attribute of a model")
    model = RobustSparseKMeans(**params)
    if set(params) != set(model.get_params(deep=False)) or params["n_init"] is None:
        raise ValueError("parameters are missing")
    check_n_threads(params["n_threads"])  # which predictions read; a fit refuses the rest
    for name, value in params.items():
        if name not in OF_MANY and isinstance(value, np.ndarray | list | tuple | dict):
            raise ValueError(f"{name} is a {type(value).__name__}")
    axes = _check_types(attributes)
    _check_values(attributes, axes)
    n, p, n_numbers = axes["n"], axes["p"], axes["p"]
    if "outlying_cells_" in attributes:
        attributes["outlying_cells_"] = _cells(attributes["outlying_cells_"], n, p)
    if "encoder_" in attributes:
        names = attributes.get("feature_names_in_")
        encoder = CategoryEncoder.from_plain(attributes["encoder_"], names)
        if len(encoder.columns_) != p:
            raise ValueError("encoder_ does not fit the features")
        attributes["encoder_"], n_numbers = encoder, len(encoder.columns)
    if axes["q"] != n_numbers:
        raise ValueError("cluster_centers_ do not fit the features")
    attributes["_frame"] = _frame(attributes["_frame"], axes["q"])
    for name, value in attributes.items():
        setattr(model, name, value)
    return model


def _check_types(attributes: dict[str, Any]) -> dict[str, int]:
    """Check types and shapes, on which compiled passes rely; return the lengths of the axes."""
    axes: dict[str, int] = {}
    for name, (types, letters, _) in ATTRIBUTES.items():
        if name not in attributes or types == "csr":
            continue
        value = attributes[name]
        if letters:
            if value.dtype not in [np.dtype(each) for each in types.split()]:
                raise ValueError(f"{name} is of type {value.dtype}")
            for axis, length in zip(letters, value.shape, strict=True):
                if axes.setdefault(axis, length) != length or length == 0:
                    raise ValueError(f"{name} has shape {value.shape}, which does not fit")
        elif types in PYTHON and type(value).__name__ not in (types, MAY_BE_NONE.get(name)):
            raise ValueError(f"{name} is not of type {types}")
    return axes


def _check_values(attributes: dict[str, Any], axes: dict[str, int]) -> None:
    n, p, K = axes["n"], axes["p"], axes["K"]
    limits = (
        (0, INFINITE, "distances_ unweighted_distances_ feature_statistics_"),
        (0, FINITE, "outlier_cutoff_ l1_bound_ sample_weight_"),
        (0, 1e100, "feature_weights_"),
        # These divide.
        (ABOVE_0, INFINITE, "cell_scales_ outlier_threshold_ unweighted_outlier_threshold_"),
        (ABOVE_0, FINITE, "cell_cutoff_"),
        (-FINITE, FINITE, "objective_ inertia_"),  # a sum of squares may round to less than 0
        (-INFINITE, INFINITE, "objective_path_"),
        (0, 1, "feature_p_values_ trim_"),
        (0, p, "n_features_different_ n_features_enough_"),
        (p, p, "n_features_in_"),
        (0, n, "n_trim_"),
        (0, axes["i"], "n_iter_"),
        (0, n * p, "n_missing_"),
        (0, K - 1, "labels_"),
        (0, axes.get("g", 0) - 1, "feature_group_"),
    )
    for least, most, names in limits:
        for name in names.split():
            value = attributes.get(name)
            if value is not None and not np.all((least <= value) & (value <= most)):  # nor NaN
                raise ValueError(f"{name} is not between {least:.3g} and {most:.3g}")
    for name in ("feature_weights_", "sample_weight_"):
        if name in attributes and not attributes[name].any():
            raise ValueError(f"{name} are all 0")
    if np.isinf(attributes["cluster_centers_"]).any():  # NaN where no case has the feature
        raise ValueError("cluster_centers_ are infinite")
    for name in TEXTS:
        if not all(type(each) is str for each in attributes.get(name, ())):
            raise ValueError(f"{name} are not text")
    if ("feature_group_" in attributes) is not ("group_names_" in attributes):
        raise ValueError("feature_group_ and group_names_ do not belong together")
    config = attributes.get("_sklearn_output_config", {})
    if config and (set(config) != {"transform"} or config["transform"] not in OUTPUTS):
        raise ValueError("its kind of output is unknown")


def _cells(places: Any, n: int, p: int) -> csr_array:
    """Return the outlying cells (n, p) of cases and features (2, cells)."""
    is_pair = isinstance(places, np.ndarray) and places.dtype == np.int64 and places.ndim == 2
    if not is_pair or len(places) != 2 or ((places < 0) | (places >= [[n], [p]])).any():
        raise ValueError("outlying_cells_ are not those of cases and features")
    return csr_array((np.ones(places.shape[1], bool), tuple(places)), (n, p))


def _frame(fields: dict[str, Any], p: int) -> Frame:
    frame = Frame(**fields)
    for array in (frame.location, frame.limits):
        if array.dtype != np.float64 or array.shape != (p,) or not np.isfinite(array).all():
            raise ValueError("_frame does not fit the features")
    is_scale = type(frame.factor) is float and 2.0**-1000 <= frame.factor <= 2.0**1000
    if not is_scale or frame.limits.min() <= 0:
        raise ValueError("_frame has a wrong factor, or limits below 0")
    return frame
