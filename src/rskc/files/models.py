"""Fitted models in files that are safe to open, whoever made them.

A model's file is a zip archive that any tool opens: ``rskc-model.json`` describes the contents, and
the arrays are .npy files. There is no pickle in it, hence nothing that could run. It is not
compressed, so that nothing in it can be larger than the file. The archive's comment is the SHA-256
of all the bytes before it: a file of which a byte has changed, or is missing, is refused. That
digest guards against accidents; against strangers, all that is read is checked: which attributes
there are, their types and values, and that their shapes fit each other. Each array is read once:
loading takes at most 30 times the file's size, and 3 times where it is mostly arrays.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Callable, Mapping
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

import rskc
from rskc.estimator import RobustSparseKMeans
from rskc.files._contents import checked_model, decode, encode, pack, unpack
from rskc.inputs.arrays import model_to_numpy
from rskc.inputs.categories import as_plain as plain_columns
from rskc.inputs.validation import plain_centers
from rskc.model.fitted import ATTRIBUTES
from rskc.solver.feature_groups import as_plain
from rskc.utils.atomic import atomic_write

FORMAT, VERSION = "rskc model", 1
CONTENTS = "rskc-model.json"
DIGEST_LENGTH = 64
TIMES = (1980, 1, 1, 0, 0, 0)  # in the archive, so that the same model makes the same file


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
    data = _checked(path, _bytes_of(path))
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            unread = _check_entries(archive, len(data))

            def get(name: str) -> Any:
                # Each array once: named a thousand times, it would take a thousand times its size.
                unread.remove(name)
                return unpack(archive.read(name))

            contents = json.loads(archive.read(CONTENTS))
            if contents["format"] != FORMAT or contents["class"] != "RobustSparseKMeans":
                raise ValueError(f"it claims to be a {contents['format']!s:.40}")
            if contents["version"] == VERSION:
                return _decoded(contents, get)
    except Exception as error:  # zip, JSON, NumPy and the checks below: all mean the same
        words = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise _refusal(path, f"is not a model that rskc can use ({words})") from error
    raise _refusal(
        path,
        f"was written by rskc {contents['rskc']!s:.20} in version {contents['version']!s:.20} of "
        f"the format, and this is rskc {rskc.__version__}, which reads version {VERSION}",
    )


def _refusal(path: str | os.PathLike, words: str) -> ModelFileError:
    return ModelFileError(f"{os.fspath(path)!r} {words}.")


def _archive(model: RobustSparseKMeans, extra: dict[str, Any]) -> bytes:
    """Return the bytes of a file: an archive with its own digest at the end."""
    arrays: dict[str, np.ndarray] = {}

    def add(array: np.ndarray) -> str:
        name = f"arrays/{len(arrays)}.npy"
        arrays[name] = array
        return name

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
    contents = {
        "format": FORMAT,
        "version": VERSION,
        "rskc": rskc.__version__,
        "class": "RobustSparseKMeans",
        "params": {
            name: _encoded(f"{name}={value!r:.60}", value, add) for name, value in params.items()
        },
        "attributes": {name: _encoded(name, value, add) for name, value in attributes.items()},
        "extra": _encoded("extra", extra, add),
    }
    text = json.dumps(contents, indent=1, allow_nan=False)
    try:
        _decoded(json.loads(text), lambda name: arrays[name][()])
    except Exception as error:  # what load would refuse
        raise ValueError(f"model cannot be saved: it could not be loaded ({error}).") from error
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        archive.comment = b"0" * DIGEST_LENGTH
        archive.writestr(zipfile.ZipInfo(CONTENTS, TIMES), text.encode())
        for name, array in arrays.items():
            archive.writestr(zipfile.ZipInfo(name, TIMES), pack(array))
    body = buffer.getvalue()[:-DIGEST_LENGTH]
    return body + hashlib.sha256(body).hexdigest().encode()


def _encoded(what: str, value: Any, add: Any) -> Any:
    try:
        return encode(value, add)
    except TypeError as error:
        remedy = "; model.set_params(init='auto') forgets it" if what.startswith("init=") else ""
        raise TypeError(f"{what} cannot be saved: it holds {error}{remedy}.") from error


def _bytes_of(path: str | os.PathLike) -> bytes:
    """Read the file."""
    try:
        if Path(path).exists() and not Path(path).is_file():
            raise _refusal(path, "is not a file")
        return Path(path).read_bytes()
    except FileNotFoundError as error:
        raise _refusal(path, "is not there") from error
    except UnicodeEncodeError as error:
        raise _refusal(path, "is not there: no file can have such a name") from error
    except OSError as error:
        raise _refusal(path, f"cannot be opened ({error.strerror})") from error


def _checked(path: str | os.PathLike, data: bytes) -> bytes:
    """Return the bytes, if they are those of a whole file of ours."""
    if not data:
        raise _refusal(path, "is empty")
    if not data.startswith(b"PK") or not data[30:].startswith(CONTENTS.encode()):
        raise _refusal(path, "is not a model of rskc, which has rskc-model.json in a zip archive")
    digest = hashlib.sha256(data[:-DIGEST_LENGTH]).hexdigest()
    if digest.encode() != data[-DIGEST_LENGTH:]:
        raise _refusal(path, "is damaged, cut short or was altered: its checksum is wrong")
    return data


def _check_entries(archive: zipfile.ZipFile, size: int) -> list[str]:
    """Return the names of the arrays; refuse other names, compression, entries that overlap."""
    entries = archive.infolist()
    names = [f"arrays/{number}.npy" for number in range(len(entries) - 1)]
    if [entry.filename for entry in entries] != [CONTENTS, *names]:
        raise ValueError("it holds other files than a model does")
    if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
        raise ValueError("it is compressed, which models are not")
    if sum(entry.file_size for entry in entries) > size:
        raise ValueError("its contents are larger than the file")
    return names


def _decoded(contents: dict[str, Any], get: Callable[[str], Any]) -> SavedModel:
    """Return what the contents of a file mean; ``get`` returns an array by its name."""
    params = {name: decode(value, get) for name, value in contents["params"].items()}
    attributes = {name: decode(value, get) for name, value in contents["attributes"].items()}
    extra = decode(contents["extra"], get)
    if not isinstance(extra, dict):
        raise TypeError("extra is no dictionary")
    return SavedModel(checked_model(params, attributes), extra, str(contents["rskc"]))
