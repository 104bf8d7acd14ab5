"""What the solver asks of an engine: the contract, and what is done alike in all places.

Rules of an engine:

- An engine is one place where data are: memory, blocks of a cluster, a device. Missing cells and
  masses of the cases are facts about its data, and no engines of their own.
- Every pass takes a leading axis of runs, so that many restarts, or several branches, are one
  matrix product.
- Arrays of length n - labels, groups, costs, masks - are of the engine's own kind and stay where
  the data are. The solver hands them on, joins masks by ``&``, ``|`` and ``~``, multiplies costs by
  a number, and leaves all else to ``arrays``, the engine's :class:`ArrayOps`.
  What has K x p numbers, or one for each run, is NumPy's.
- Groups are labels, with -1 for a trimmed case. Where cases have masses, sums, sizes, medians and
  what is trimmed are by mass, and the last case that is trimmed may be so in part
  (:mod:`rskc.engines.groups`).
- Of cells that are missing nothing is imputed (:mod:`rskc.engines.sums`).
- The same data give the same bits for any number of threads.

:class:`Engine`, :class:`Table` and :class:`ArrayOps` have a body wherever there is one for all; an
engine is what differs. It adds the passes, and the making of its tables: ``_cells``, ``_table_of``
and, for rotated ones, ``_gram`` and ``_table_of_coordinates``.
"""
