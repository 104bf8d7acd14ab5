"""What the kernels share."""

# Cases of a tile, whose groups are copied, counted or trimmed by one program.
TILE = 4096


def unit(q):
    """Return what q is a multiple of: with 4, cells load 4 at a time, in half the (wide) time."""
    return 4 if q % 4 == 0 else 1
