"""Model files as a stranger may write them."""

import hashlib
import io
import json
import zipfile

import pytest

from rskc import load
from rskc.files import ModelFileError, models


def refusal(path):
    with pytest.raises(ModelFileError) as caught:
        load(path)
    words = str(caught.value)
    assert words.startswith(repr(str(path)))
    assert words.endswith(".")
    assert "\n" not in words
    return words


def rewritten(data, path, change=lambda contents: None, compression=zipfile.ZIP_STORED, **entries):
    """Write a file as a stranger may, whose digest is right."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    contents = json.loads(files[models.CONTENTS])
    change(contents)
    files[models.CONTENTS] = json.dumps(contents).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        archive.comment = b"0" * 64
        for name, content in (files | entries).items():
            archive.writestr(name, content)
    body = buffer.getvalue()[:-64]
    path.write_bytes(body + hashlib.sha256(body).hexdigest().encode())
    return path


def setting(*keys, value):
    def change(contents):
        for key in keys[:-1]:
            contents = contents[key]
        contents[keys[-1]] = value

    return change


def removing(*keys):
    def change(contents):
        for key in keys[:-1]:
            contents = contents[key]
        del contents[keys[-1]]

    return change
