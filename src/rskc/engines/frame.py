"""Where data lie and how large they are: the frame in which all passes see them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

# In tables, cells beyond this many times the largest spread of a column are cut off there: sums
# then keep some digits of the others when an outlying case joins and leaves a cluster, and squares
# stay finite. What is returned is summed anew, from the data themselves.
OUTLYING = 1e9
# Cells of the rows that show how large columns are that are mostly constant.
FRAME_CELLS = 2**22


class Frame(NamedTuple):
    """Where the data lie and how large they are: all passes see (X - location) * factor.

    The factor keeps squares from overflow and underflow, whatever the scale of the data.
    """

    location: np.ndarray
    factor: float
    limits: np.ndarray  # (p,) where tables cut off, in the frame

    @classmethod
    def of(cls, X: np.ndarray) -> Frame:
        """Frame X robustly, from a sample of its rows."""
        few, many = sample_steps(*X.shape)
        return cls.from_rows(X[::few], X[::many])

    @classmethod
    def from_rows(cls, few: np.ndarray, many: Any) -> Frame:
        """Frame data by about 31 of their rows, and more for columns that hardly vary.

        Center first: |x|^2 - 2xc + |c|^2 loses digits when the center of the data is far from 0.
        A median, so that an outlying cell of 1e30 does not drag its column away: of about 31 rows,
        since any place among the data will do, and a median over all of 300 x 1000 cells takes 4
        ms.
        """
        ordered = np.sort(few.astype(np.float64), axis=0)
        last = len(ordered) - 1
        location = ordered[(last + 1) // 2]
        spread = ordered[last - last // 4] - ordered[last // 4]
        for j in np.flatnonzero(spread == 0):
            # The median deviation of the cells that deviate, in a column that is mostly constant.
            deviations = np.abs(many[:, j] - location[j])
            deviations = deviations[deviations > 0]
            spread[j] = np.median(deviations) if len(deviations) else 0.0
        typical = spread.max() if spread.any() else 1.0
        factor = 2.0 ** np.clip(-np.floor(np.log2(typical)), -1000, 1000)
        return cls(location, float(factor), np.full(len(spread), OUTLYING * typical * factor))

    def place(self, points: np.ndarray) -> np.ndarray:
        """Bring points from the space of the data into the frame."""
        return (points - self.location) * self.factor

    def of_columns(self, columns: np.ndarray) -> Frame:
        """Return the frame of some of the columns."""
        return Frame(self.location[columns], self.factor, self.limits[columns])


def sample_steps(n: int, p: int) -> tuple[int, int]:
    """Return the steps between the rows that a frame is made of: the few, and the many."""
    return max(1, -(-n // 31)), max(1, -(-n // max(31, FRAME_CELLS // p)))


class Place(NamedTuple):
    """Where the columns of a table come from."""

    columns: np.ndarray
    frame: Frame

    def centers(self, centers: np.ndarray) -> np.ndarray:
        """Bring centers (runs, K, p) from the space of the data into that of the table."""
        frame = self.frame.of_columns(self.columns)
        return np.clip(frame.place(centers[:, :, self.columns]), -frame.limits, frame.limits)


def observed_frame(X: np.ndarray) -> Frame:
    """Frame X by cells that are observed; its location is exact in the type of X.

    About 31 rows stand for all: in each column, missing cells among them are filled with observed
    cells.
    """
    sample = X[:: sample_steps(*X.shape)[0]]
    missing = np.isnan(sample)
    # The observed cells of a column, in order, over and over.
    places = np.arange(len(sample))[:, None] % np.maximum(np.count_nonzero(~missing, axis=0), 1)
    places = np.take_along_axis(np.argsort(missing, axis=0, kind="stable"), places, axis=0)
    sample = np.take_along_axis(sample, places, axis=0)
    for j in np.flatnonzero(missing.all(axis=0)):
        cells = X[~np.isnan(X[:, j]), j]
        sample[:, j] = np.resize(cells, len(sample)) if len(cells) else 0.0
    frame = Frame.from_rows(sample, sample)
    return frame._replace(location=frame.location.astype(X.dtype).astype(np.float64))
