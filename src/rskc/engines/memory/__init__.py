"""The engine for NumPy arrays and sparse matrices in memory."""

from rskc.engines.memory.engine import MemoryEngine, passes_info
from rskc.engines.memory.ops import PASSES
from rskc.engines.memory.sparse import SparseEngine
from rskc.engines.memory.sparse_cells import has_nan, is_full
from rskc.engines.memory.tables import MemoryTable

__all__ = [
    "PASSES",
    "MemoryEngine",
    "MemoryTable",
    "SparseEngine",
    "has_nan",
    "is_full",
    "passes_info",
]
