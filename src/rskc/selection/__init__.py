"""Choosing the number of clusters, the L1 bound and the trimming share."""

from rskc.selection.clest import Clest

__all__ = ["Clest"]
