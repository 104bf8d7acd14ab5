"""What the machine has left: memory, within the limits of a container and of the process."""

import importlib.util
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

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


# The files of limit and usage in each version of cgroups, and what memory.stat calls the memory
# that the system gives back when it is needed.
ONE = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
TWO = ("memory.max", "memory.current", "inactive_file")


def _left_in_groups() -> Iterator[int]:
    """Yield what each of the control groups of this process has left, up to the root."""
    lines = OWN_GROUPS.read_text().splitlines() if OWN_GROUPS.exists() else []
    for _, controllers, path in (line.split(":", 2) for line in lines):
        if controllers and "memory" not in controllers.split(","):
            continue
        root, version = (CGROUPS / "memory", ONE) if controllers else (CGROUPS, TWO)
        own = root / path.lstrip("/")
        for folder in (own, *own.parents[: len(own.relative_to(root).parts)]):
            with suppress(OSError, ValueError, KeyError):  # "max" is no number, and no limit
                limit, used = (int((folder / name).read_text()) for name in version[:2])
                stat = (folder / "memory.stat").read_text().splitlines()
                if limit < NO_LIMIT:
                    yield limit - used + int(dict(line.split() for line in stat)[version[2]])


def _left_to_process() -> Iterator[int]:
    """Yield what RLIMIT_AS, as ``ulimit -v`` sets it, leaves."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            yield limit - pages * resource.getpagesize()
