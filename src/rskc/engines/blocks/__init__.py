"""The engine for Dask arrays: the passes of the engines in memory, block by block.

No algorithm of its own: each task runs a pass of ``MemoryEngine`` on one block, and sums of K x p
numbers, counts and thresholds come back. Labels, groups, costs and masks stay with their blocks.

``plans`` says what is made of each block and what is kept, ``schedulers`` where, ``tasks`` how;
``order`` finds thresholds and medians. ``data``, ``ops`` and ``engine`` are what the solver sees.
"""

from rskc.engines.blocks.engine import BlocksEngine

__all__ = ["BlocksEngine"]
