"""Results of earlier runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def open_model(path: Path) -> Any:
    """The saved model, given its file or its folder."""
    from rskc.files import ModelFileError, read_model

    if path.is_dir() and not (path / "model.rskc").exists():
        raise ModelFileError(f"the folder {str(path)!r} has no model.rskc in it.")
    return read_model(path / "model.rskc" if path.is_dir() else path)


def check_no_file(path: Path | None, force: bool) -> None:
    """Refuse, before any work, to overwrite a file or to write where there is no folder."""
    if path is None:
        return
    if path.is_dir():
        raise ValueError(f"{str(path)!r} is a folder; give the name of a file to --out.")
    if path.exists() and path.is_file() and not force:
        raise ValueError(
            f"{str(path)!r} is there already; use --force to replace it, or --out for another name."
        )
    path.parent.mkdir(parents=True, exist_ok=True)
