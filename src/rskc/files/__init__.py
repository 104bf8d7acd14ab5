"""Tables in, results and models out.

``tables`` reads tables of many formats and says, in one sentence with file, line and column, what
is wrong with one; ``blocks`` reads large ones a block at a time; ``models`` keeps fitted models in
files that are safe to open; ``beside`` reads classes of cases and groups of features from files of
their own; ``writing`` writes whole files or none.
"""

from rskc.files.beside import MatchedGroups, read_gmt
from rskc.files.models import ModelFileError, SavedModel, load, read_model, save
from rskc.files.tables import Table, TableError, read_table
from rskc.files.writing import to_json, write_csv, write_json, write_ranked_lists
from rskc.utils.atomic import atomic_write

__all__ = [
    "MatchedGroups",
    "ModelFileError",
    "SavedModel",
    "Table",
    "TableError",
    "atomic_write",
    "load",
    "read_gmt",
    "read_model",
    "read_table",
    "save",
    "to_json",
    "write_csv",
    "write_json",
    "write_ranked_lists",
]
