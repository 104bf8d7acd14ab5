"""What the machine has left: memory, within the limits of a container and of the process."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

# A container may see the files of its groups at the root of the mount, and not at their own paths.
CGROUPS, OWN_GROUPS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
# Limits beyond this are none: version 1 of cgroups writes 2^63 less a page.
NO_LIMIT = 2**60


def free_memory() -> int | None:
    """Return the bytes of memory that this process may still take, if that can be known."""
    left = [*_left_on_machine(), *_left_in_groups(), *_left_to_process()]
    return max(0, min(left)) if left else None


def _left_on_machine() -> Iterator[int]:
    if importlib.util.find_spec("psutil") is not None:
        import psutil  # type: ignore[import-untyped]

        yield psutil.virtual_memory().available
        return
    with suppress(AttributeError, OSError, ValueError):
        yield os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


class _Version(NamedTuple):
    """The files of a version of cgroups."""

    limit: str
    usage: str
    reclaimable: str  # in memory.stat: what the system gives back when it is needed


ONE = _Version("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
TWO = _Version("memory.max", "memory.current", "inactive_file")


def _left_in_groups() -> Iterator[int]:
    """Yield what each of the control groups of this process has left, up to the root."""
    with suppress(OSError):
        for line in OWN_GROUPS.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers == "":
                yield from _left_below(CGROUPS, path, TWO)
            elif "memory" in controllers.split(","):
                yield from _left_below(CGROUPS / "memory", path, ONE)


def _left_below(root: Path, path: str, version: _Version) -> Iterator[int]:
    own = root / path.lstrip("/")
    for folder in (own, *own.parents):
        with suppress(OSError, ValueError):  # "max" is no number, and no limit
            limit = int((folder / version.limit).read_text())
            if limit < NO_LIMIT:
                used = int((folder / version.usage).read_text())
                yield limit - used + _reclaimable(folder, version)
        if folder == root:
            return


def _reclaimable(folder: Path, version: _Version) -> int:
    with suppress(OSError, ValueError):
        lines = (folder / "memory.stat").read_text().splitlines()
        return int(dict(line.split() for line in lines)[version.reclaimable])
    return 0


def _left_to_process() -> Iterator[int]:
    """Yield what RLIMIT_AS, as ``ulimit -v`` sets it, leaves."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            yield limit - pages * resource.getpagesize()
