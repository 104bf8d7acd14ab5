"""A folder of results that is there whole, or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# What we write; nothing else in a folder is ever replaced or removed.
OURS = ("labels.csv", "features.csv", "summary.json", "model.rskc", "report.html", "table.csv")


@contextmanager
def results_folder(folder: Path, force: bool) -> Iterator[Path]:
    """Make a folder beside ``folder`` to write into, which takes its place when the block ends.

    If the block is left by an exception, nothing stays. With ``force`` an existing folder keeps
    what is not ours.
    """
    target = Path(os.path.realpath(folder))
    check_free(folder, target, force)
    made, part = _missing_parents(target), None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        prefix = f".{target.name[:60]}."
        part = Path(tempfile.mkdtemp(prefix=prefix, suffix=".part", dir=target.parent))
        yield part
        _install(part, target)
    except OSError as error:
        _discard(part, made)
        raise _about(error, part, folder) from error
    except BaseException:
        _discard(part, made)
        raise


def check_free(folder: Path, target: Path, force: bool) -> None:
    """Refuse, before any work, to overwrite what is there."""
    if target.exists() and not target.is_dir():
        raise ValueError(f"{str(folder)!r} is a file, and the results need a folder; use --out.")
    if not force and target.is_dir() and any(target.iterdir()):
        raise ValueError(
            f"the folder {str(folder)!r} is there already; use --force to replace the results in "
            "it, or --out for another folder."
        )


def _missing_parents(target: Path) -> list[Path]:
    return [parent for parent in target.parents if not parent.exists()]


def _install(part: Path, target: Path) -> None:
    mask = os.umask(0o022)
    os.umask(mask)
    part.chmod(0o777 & ~mask)
    if not target.exists():
        part.rename(target)
        return
    written = {file.name for file in part.iterdir()}
    for name in sorted(written):
        os.replace(part / name, target / name)
    for name in set(OURS) - written:  # of an earlier result, which is gone
        (target / name).unlink(missing_ok=True)
    part.rmdir()


def _discard(part: Path | None, made: list[Path]) -> None:
    if part is not None:
        shutil.rmtree(part, ignore_errors=True)
    for folder in made:
        with suppress(OSError):
            folder.rmdir()


def _about(error: OSError, part: Path | None, folder: Path) -> OSError:
    """The same error, about the folder that was asked for and not about one nobody has heard of."""
    name = os.fspath(error.filename or folder)
    if error.errno is None:
        return error
    if part is not None and str(part) in str(name):
        name = str(name).replace(str(part), str(folder))
    elif part is None:
        name = folder
    return type(error)(error.errno, error.strerror, str(name))
