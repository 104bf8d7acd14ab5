"""The passes that are used: the compiled ones, or where there was no compiler their NumPy twin."""

from types import ModuleType

from rskc.engines import passes_numpy

PASSES: ModuleType = passes_numpy
try:
    from rskc.engines import _passes
except ImportError:  # built without a compiler
    pass
else:
    PASSES = _passes
