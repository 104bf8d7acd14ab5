"""Files that are written whole or not at all (internal)."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

PREFIX, SUFFIX = ".rskc-", ".part"  # of temporary files


@contextmanager
def atomic_write(path: str | os.PathLike, mode: str = "wb") -> Iterator[IO[Any]]:
    """Open a file for writing that appears at ``path`` whole, or not at all.

    The bytes go to a temporary file in the same folder, which takes the place of ``path`` when the
    block ends and is removed if it is left by an exception, KeyboardInterrupt included: the old
    file then stays as it was. A link is followed; a device or a pipe is written to directly. A
    process that is killed leaves its temporary file behind.

    Parameters
    ----------
    path : str or path
        Where the file is to be.
    mode : {"wb", "w"}, default="wb"
        Bytes, or text in UTF-8 with line ends as given.

    Yields
    ------
    file : binary or text file

    Raises
    ------
    OSError
        With ``path`` as its file name, if it cannot be written.
    """
    target = Path(os.path.realpath(path))
    try:
        is_device = target.exists() and not target.is_file()
        with _opened(target, mode) if is_device else _replacing(target, mode) as file:
            yield file
    except OSError as error:
        # The name of the temporary file would mean nothing to the reader.
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


@contextmanager
def _replacing(target: Path, mode: str) -> Iterator[IO[Any]]:
    handle, temporary = tempfile.mkstemp(prefix=PREFIX, suffix=SUFFIX, dir=target.parent)
    try:
        with _opened(handle, mode) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        permissions = 0o666 & ~umask()
        with suppress(FileNotFoundError):  # those of the file that is replaced
            permissions = target.stat().st_mode & 0o777
        os.chmod(temporary, permissions)
        os.replace(temporary, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def umask() -> int:
    """Return the permissions that new files do not get."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _opened(target: int | Path, mode: str) -> IO[Any]:
    if "b" in mode:
        return open(target, mode)
    # Half of a character, as in names of files that are no UTF-8, becomes an escape.
    return open(target, mode, encoding="utf-8", errors="backslashreplace", newline="")
