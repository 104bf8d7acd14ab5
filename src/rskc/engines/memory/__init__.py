"""The engine for NumPy arrays and sparse matrices in memory."""

from rskc.engines.memory.engine import (
    MemoryEngine,
    MemoryTable,
    passes_info,
)
from rskc.engines.memory.ops import PASSES
from rskc.engines.memory.sparse import SparseEngine, has_nan, is_full

__all__ = [
    "PASSES",
    "MemoryEngine",
    "MemoryTable",
    "SparseEngine",
    "has_nan",
    "is_full",
    "passes_info",
]
