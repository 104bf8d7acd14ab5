"""The algorithm. It sees data through an engine only; it does no I/O and knows no scikit-learn."""

from rskc.solver.alternate import Problem
from rskc.solver.search import Starts
from rskc.solver.solution import Solution, Warm, solve, solve_near, solve_path

__all__ = ["Problem", "Solution", "Starts", "Warm", "solve", "solve_near", "solve_path"]
