"""Work that is counted and not timed, so that a loaded machine passes the same tests."""

import gc
import sys
from collections.abc import Callable


def count_calls(work: Callable[[], object]) -> int:
    """Count the calls of Python and C functions: a loop over cases or cells shows, NumPy's do not.

    The work is done once before, so that imports and caches are not counted; nor are calls by the
    garbage collector, which comes whenever it likes.
    """
    work()
    count = 0

    def profile(frame: object, event: str, arg: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before, collects = sys.getprofile(), gc.isenabled()
    gc.disable()
    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(before)
        if collects:
            gc.enable()
    return count
