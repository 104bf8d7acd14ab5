"""A fit, from checked data to a model: what the data decide, outliers, cells, prediction."""
