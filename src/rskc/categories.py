"""Columns of categories as numbers: the public name of what is in ``rskc.inputs.categories``."""

from rskc.inputs.categories import CategoryEncoder

__all__ = ["CategoryEncoder"]
