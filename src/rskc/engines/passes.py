"""The passes that are used: the compiled ones, or where there was no compiler their NumPy twin."""

from contextlib import suppress
from importlib import import_module
from types import ModuleType

from rskc.engines import passes_numpy

PASSES: ModuleType = passes_numpy
with suppress(ImportError):  # built without a compiler
    PASSES = import_module("rskc.engines._passes")
