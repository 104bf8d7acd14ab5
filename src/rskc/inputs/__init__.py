"""What users give, checked and made numbers: arrays, frames, categories, weights, labels."""
