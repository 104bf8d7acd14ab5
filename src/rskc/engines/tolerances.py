"""What counts as none and as the same; ``kernels.h`` has these numbers too."""

# Less mass than this, where a case has about 1, is none.
NO_MASS = 1e-9
# Masses that are off by less than this share of what is trimmed are off by rounding.
MASS_SLACK = 1e-11
# Parts of a case that differ by less are the same: sums of masses are rounded.
SAME_PART = 1e-9
# Less observed weight than this share of all weight counts as none.
NOTHING = 1e-12
