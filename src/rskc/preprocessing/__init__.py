"""What is done to a table before it is clustered: scales, logarithms, levels of cases."""

from rskc.preprocessing.preparer import Preparer
from rskc.preprocessing.standardizers import ColumnStandardizer, RowStandardizer

__all__ = ["ColumnStandardizer", "Preparer", "RowStandardizer"]
