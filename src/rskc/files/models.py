"""Fitted models in files that are safe to open, whoever made them.

A model's file is a zip archive that any tool opens: ``rskc-model.json`` describes the contents, and
the arrays are .npy files. There is no pickle in it, hence nothing that could run. It is not
compressed, so that nothing in it can be larger than the file. The archive's comment is the SHA-256
of all the bytes before it: a file of which a byte has changed, or is missing, is refused. That
digest guards against accidents; against strangers, all that compiled passes rely on is checked:
which attributes there are, their types, that their shapes fit each other, and numbers of clusters
and groups. Who writes other centers gets other predictions. Each array is read once: loading takes
at most 30 times the file's size, and 3 times where it is mostly arrays.
"""

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Mapping
from functools import partial
from numbers import Integral, Real
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils.validation import check_is_fitted

import rskc
from rskc.engines import Frame
from rskc.estimator import RobustSparseKMeans
from rskc.files._source import check_text
from rskc.inputs.arrays import model_to_numpy
from rskc.inputs.categories import CategoryEncoder
from rskc.inputs.categories import as_plain as plain_columns
from rskc.inputs.validation import plain_centers
from rskc.model.fitted import ATTRIBUTES
from rskc.solver.groups import as_plain
from rskc.utils.atomic import atomic_write

FORMAT, VERSION = "rskc model", 1
CONTENTS = "rskc-model.json"
DIGEST_LENGTH = 64
OF_MANY = ("feature_groups", "categorical", "ordinal", "init")  # parameters
PYTHON = ("int", "float", "list", "dict")
MAY_BE_NONE = dict.fromkeys(("l1_bound_", "cell_cutoff_"), "NoneType")


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
        arrays, in lists and in dictionaries with keys of text. ``read_model`` returns it.

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
    try:
        _decoded(data)
    except Exception as error:  # what load would refuse
        raise ValueError(f"model cannot be saved: it could not be loaded ({error}).") from error
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
    try:
        data = Path(path).read_bytes()
    except (OSError, UnicodeEncodeError) as error:
        words = getattr(error, "strerror", None) or "no file can have such a name"
        raise _refusal(path, f"cannot be opened ({words})") from error
    if not data.startswith(b"PK") or not data[30:].startswith(CONTENTS.encode()):
        raise _refusal(path, "is not a model of rskc, which has rskc-model.json in a zip archive")
    if _digest(data[:-DIGEST_LENGTH]) != data[-DIGEST_LENGTH:]:
        raise _refusal(path, "is damaged, cut short or was altered: its checksum is wrong")
    try:
        return _decoded(data)
    except Exception as error:  # zip, JSON, NumPy and the checks below: all mean the same
        words = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise _refusal(path, f"is not a model that rskc can use ({words})") from error


def _refusal(path: str | os.PathLike, words: str) -> ModelFileError:
    return ModelFileError(f"{os.fspath(path)!r} {words}.")


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest().encode()


def _archive(model: RobustSparseKMeans, extra: dict[str, Any]) -> bytes:
    """Return the bytes of a file: an archive with its own digest at the end."""
    arrays: dict[str, np.ndarray] = {}
    params = model.get_params(deep=False)
    if callable(params["init"]):
        raise TypeError(
            "init cannot be saved: it is a function; model.set_params(init='auto') forgets it."
        )
    params["init"] = plain_centers(params["init"])
    if not isinstance(params["random_state"], Integral):  # nothing, or a state that a fit uses up
        params["random_state"] = None
    params["feature_groups"] = as_plain(params["feature_groups"])
    for name in ("categorical", "ordinal"):
        params[name] = plain_columns(params[name])
    attributes = {name: vars(model)[name] for name in ATTRIBUTES if name in vars(model)}
    attributes["_frame"] = model._frame._asdict()
    if "encoder_" in attributes:
        attributes["encoder_"] = model.encoder_.columns_
    if "outlying_cells_" in attributes:
        attributes["outlying_cells_"] = np.array(model.outlying_cells_.nonzero(), np.int64)
    contents = {
        "format": FORMAT,
        "version": VERSION,
        "rskc": rskc.__version__,
        "params": params,
        "attributes": attributes,
        "extra": extra,
    }
    try:
        text = json.dumps(contents, indent=1, default=partial(_encoded, arrays))
    except TypeError as error:
        raise TypeError(f"extra cannot be saved: it holds {error}.") from error
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.comment = b"0" * DIGEST_LENGTH
        # Without the time of day: the same model makes the same file.
        archive.writestr(zipfile.ZipInfo(CONTENTS), text.encode())
        for name, array in arrays.items():
            packed = io.BytesIO()
            np.save(packed, array, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(name), packed.getvalue())
    body = buffer.getvalue()[:-DIGEST_LENGTH]
    return body + _digest(body)


def _decoded(data: bytes) -> SavedModel:
    """Return what the bytes of a file mean."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if sum(entry.file_size for entry in archive.infolist()) > len(data):
            raise ValueError("its contents are larger than the file")
        names = set(archive.namelist()) - {CONTENTS}
        arrays = {name: unpack(archive.open(name)) for name in names}
        text = archive.read(CONTENTS)
    contents = json.loads(text, object_hook=partial(_revived, arrays))
    if (contents["format"], contents["version"]) != (FORMAT, VERSION):
        raise ValueError(
            f"it is a {contents['format']!s:.20} of version {contents['version']!s:.20}, "
            f"written by rskc {contents['rskc']!s:.20}; this is rskc {rskc.__version__}, "
            f"which reads version {VERSION}"
        )
    if not isinstance(contents["extra"], dict):
        raise TypeError("extra is no dictionary")
    model = checked_model(contents["params"], contents["attributes"])
    return SavedModel(model, contents["extra"], str(contents["rskc"]))


# ---- Values that JSON does not have

KINDS = "biufU"  # of arrays: true and false, numbers, text
ARRAY, NAMES = "__array__", "__names__"  # keys of dictionaries that stand for arrays


def _encoded(arrays: dict[str, np.ndarray], value: Any) -> Any:
    """Return a value as JSON; arrays are added to those of the file."""
    if isinstance(value, np.ndarray) and value.dtype == object and value.ndim == 1:
        names = [each.item() if isinstance(each, np.generic) else each for each in value]
        return {NAMES: [x if isinstance(x, bool | int | float) else str(x) for x in names]}
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in KINDS:
        name = f"arrays/{len(arrays)}.npy"
        arrays[name] = np.asarray(value)
        return {ARRAY: name}
    if isinstance(value, Real):  # such as a fraction
        return int(value) if isinstance(value, Integral) else float(value)
    raise TypeError(f"{type(value).__name__}, which a model file has no place for")


def _revived(arrays: dict[str, Any], value: dict[str, Any]) -> Any:
    """Return the array that a piece of JSON names, or another dictionary as it is.

    Each array is taken once: named a thousand times, it would take a thousand times its size.
    """
    if value.keys() == {ARRAY}:
        return arrays.pop(value[ARRAY])
    if value.keys() == {NAMES}:
        names = np.empty(len(value[NAMES]), object)
        names[:] = value[NAMES]
        return names
    return value


def unpack(file: IO[bytes]) -> Any:
    """Return the array of a file, or the number if it has no axes."""
    array = np.lib.format.read_array(file, allow_pickle=False)
    if array.dtype.kind not in KINDS:
        raise ValueError(f"an array is of type {array.dtype}")
    if array.dtype == bool:  # NumPy relies on bytes of 0 and 1
        array = array.view(np.uint8) != 0
    check_text(array)
    return array[()]


# ---- A model


def checked_model(params: dict[str, Any], attributes: dict[str, Any]) -> RobustSparseKMeans:
    """Return the model of parameters and attributes; ValueError if they do not fit together."""
    for name, expected in ATTRIBUTES.items():
        if name not in attributes and not expected.optional:
            raise ValueError(f"{name} is missing")
    for name in set(attributes).difference(ATTRIBUTES):
        raise ValueError(f"{name!r:.60} is no attribute of a model")
    model: Any = RobustSparseKMeans(**params)
    if set(params) != set(model.get_params(deep=False)):
        raise ValueError("parameters are missing")
    for name, value in params.items():  # a fit refuses other values
        if name not in OF_MANY and isinstance(value, np.ndarray | list | dict):
            raise ValueError(f"{name} is a {type(value).__name__}")
    axes = _check_types(attributes)
    p, n_numbers = axes["p"], axes["p"]
    for name, end in (("labels_", axes["K"]), ("feature_group_", axes.get("g", 0))):
        numbers = attributes.get(name, np.zeros(0))
        if ((numbers < 0) | (numbers >= end)).any():
            raise ValueError(f"{name} is not between 0 and {end - 1}")
    if "outlying_cells_" in attributes:
        places = attributes["outlying_cells_"]
        marks = np.ones(places.shape[1], bool)
        attributes["outlying_cells_"] = csr_array((marks, tuple(places)), (axes["n"], p))
    if "encoder_" in attributes:
        names = attributes.get("feature_names_in_")
        attributes["encoder_"] = CategoryEncoder.from_plain(attributes["encoder_"], names)
        if len(attributes["encoder_"].columns_) != p:
            raise ValueError("encoder_ does not fit the features")
        n_numbers = len(attributes["encoder_"].columns)
    frame = Frame(**attributes["_frame"])
    shapes = {frame.location.shape, frame.limits.shape, (axes["q"],)}
    if attributes["n_features_in_"] != p or shapes != {(n_numbers,)}:
        raise ValueError("cluster_centers_ and _frame do not fit the features")
    vars(model).update(attributes | {"_frame": frame})
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
