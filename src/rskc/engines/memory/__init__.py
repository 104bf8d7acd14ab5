"""The engine for NumPy arrays and sparse matrices in memory."""
