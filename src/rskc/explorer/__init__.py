"""The explorer: every choice of clusters, features and trimming on one page, offline.

::

    import rskc

    rskc.explore(X).save("explorer.html")

The way there: a grid of fits (``grid``) -> what the page shows of it (``views``) -> a few bytes
(``packing``) -> the page (``page``, with the scripts of the folder ``static``).
"""

from rskc.explorer.page import Explorer, explore

__all__ = ["Explorer", "explore"]
