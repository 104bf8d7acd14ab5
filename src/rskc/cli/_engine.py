"""Where the work is done: in memory, or block by block by Dask."""

from __future__ import annotations

import importlib.util
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer import Option

from rskc.cli._voice import Voice

PANEL = "Large tables"
PATIENCE = 15  # seconds that a scheduler has to answer, and then to find a worker
PACKAGES = ("dask", "distributed", "pyarrow")


@dataclass(frozen=True)
class Engine:
    """Whether the table is held in memory, and who works on it if not."""

    engine: Annotated[
        Literal["auto", "memory", "dask"],
        Option(
            metavar="WHERE",
            help="memory, dask or auto: hold the table in memory, or read it block by block; auto "
            "does so for folders, and for Parquet and .npy files that need more than --memory, or "
            "than half of what is free.",
            rich_help_panel=PANEL,
        ),
    ] = "auto"
    scheduler: Annotated[
        str | None,
        Option(
            metavar="ADDRESS",
            help="Have a Dask cluster do the work, such as tcp://host:8786; else threads here.",
            rich_help_panel=PANEL,
        ),
    ] = None
    memory: Annotated[
        str | None,
        Option(
            metavar="AMOUNT",
            help="Memory that blocks may be kept in, such as 2GB; else half of what is free.",
            rich_help_panel=PANEL,
        ),
    ] = None

    def in_blocks(self, table: Path) -> bool:
        """Whether a table is to be read block by block; says what is missing for that."""
        from rskc.files.blocks import is_many_files

        if self.engine == "memory":
            self._check_alone()
            return False
        limit = self.n_bytes()
        asked = self.engine == "dask" or self.scheduler is not None
        if asked or is_many_files(table):
            check_dask("to read a table in blocks")
            return True
        if not _is_large(table, limit):
            return False
        check_dask(f"since {table.name!r} needs more than half of the memory that is free")
        return True

    def n_bytes(self) -> int | None:
        """The memory that blocks may be kept in, if it is said."""
        if self.memory is None:
            return None
        check_dask("to read a table in blocks, which --memory is about")
        return _bytes(self.memory)

    def _check_alone(self) -> None:
        if self.scheduler is not None:
            raise typer.BadParameter("--scheduler needs --engine dask.")
        if self.memory is not None:
            raise typer.BadParameter(
                "--memory is about blocks, and --engine memory makes none; leave one of them out."
            )


def check_dask(why: str) -> None:
    """Say, before any work, that Dask is not installed."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise ImportError(
            f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} needed {why}: pip "
            "install 'rskc[dask]'."
        )


def _is_large(table: Path, limit: int | None) -> bool:
    from rskc.files.blocks import bytes_needed

    if not table.is_file() or importlib.util.find_spec("pyarrow") is None:
        size = table.stat().st_size if table.suffix == ".npy" and table.is_file() else 0
        return _too_much(size, limit)
    try:
        return _too_much(bytes_needed(table), limit)
    except (OSError, ValueError):  # whoever reads it will say what is wrong
        return False


def _too_much(size: int, limit: int | None) -> bool:
    free = free_memory()
    return (limit is not None and size > limit) or (free is not None and size > free / 2)


def free_memory() -> int | None:
    """Bytes of memory that are free, if that can be known."""
    if importlib.util.find_spec("psutil") is not None:
        import psutil  # type: ignore[import-untyped]

        return psutil.virtual_memory().available
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


@contextmanager
def dask_at_work(engine: Engine, n_threads: int | None, voice: Voice) -> Iterator[None]:
    """Have Dask work as asked for, and let go of its cluster at the end."""
    import dask

    limit = engine.n_bytes()
    settings: dict[str, Any] = {} if limit is None else {"rskc.memory": limit}
    if engine.scheduler is None:
        workers = {} if n_threads is None else {"num_workers": n_threads}
        with dask.config.set(settings | {"scheduler": "threads"} | workers):
            yield
        return
    with (
        dask.config.set(settings),
        _quiet_log(),
        _connected(engine.scheduler) as client,
        _about_cluster(),
    ):
        voice.say_in_one_line(_told(client))
        yield


def _bytes(amount: str) -> int:
    from dask.utils import parse_bytes

    try:
        size = parse_bytes(amount) if amount.strip() else 0
    except (ValueError, OverflowError):
        size = 0
    if size <= 0:
        raise typer.BadParameter(f"--memory {amount!r} is no amount of memory, such as 2GB.")
    return size


@contextmanager
def _quiet_log() -> Iterator[None]:
    """What distributed logs of an error, the error says too."""
    log = logging.getLogger("distributed")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    from distributed import Client

    class Connection(Client):
        """A client that closes when it cannot start.

        Dask's own closes only after some errors. After the others (an unknown kind of address, TLS
        without certificates) it remains the default client, and so does its scheduler in the
        configuration of Dask, where later computations fail for want of a client.
        """

        def start(self, **kwargs: Any) -> Any:
            try:
                return super().start(**kwargs)
            except BaseException:
                self.close()
                raise

    try:
        client = Connection(address, timeout=PATIENCE, name="rskc")
    except (OSError, ValueError, TypeError) as error:
        raise ValueError(
            f"no Dask scheduler answers at {address!r}; check the address and that "
            "`dask scheduler` runs there, or leave --scheduler out to work on this machine."
        ) from error
    with client:
        _await_workers(client, address)
        yield client


def _await_workers(client: Any, address: str) -> None:
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError as error:
        raise ValueError(
            f"the Dask scheduler at {address!r} has no workers; start some by `dask worker "
            f"{address}`."
        ) from error


def _told(client: Any) -> str:
    workers = client.nthreads()
    many = "1 worker" if len(workers) == 1 else f"{len(workers)} workers"
    return f"Dask: {many} with {sum(workers.values())} threads; dashboard: {client.dashboard_link}"


@contextmanager
def _about_cluster() -> Iterator[None]:
    """What happens to a cluster is no mistake of ours."""
    try:
        yield
    except RuntimeError as error:
        if "Dask cluster" not in str(error):
            raise
        raise ValueError(str(error)) from error
