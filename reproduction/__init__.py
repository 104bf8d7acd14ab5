"""The experiments of the paper, one function each.

Each returns a :class:`Reproduction`: the figure, the tables compared with those of the paper and
of R's RSKC, and a sentence on what agrees. ``EXPERIMENTS`` has them by their names in the command
line, ``python -m reproduction``.
"""

from collections.abc import Callable

from reproduction.breast_cancer import breast_cancer
from reproduction.digits import digits
from reproduction.figure1 import figure1
from reproduction.masking import masking
from reproduction.outcome import Reproduction
from reproduction.simulation import simulation

EXPERIMENTS: dict[str, Callable[..., Reproduction]] = {
    "figure-1": figure1,
    "masking": masking,
    "simulation": simulation,
    "breast-cancer": breast_cancer,
    "digits": digits,
}

__all__ = [
    "EXPERIMENTS",
    "Reproduction",
    "breast_cancer",
    "digits",
    "figure1",
    "masking",
    "simulation",
]
