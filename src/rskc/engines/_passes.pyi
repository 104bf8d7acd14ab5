"""The compiled passes; :mod:`rskc.engines.passes_numpy` has their signatures."""

from typing import Any

def __getattr__(name: str) -> Any: ...
