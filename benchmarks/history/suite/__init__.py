"""What `make history` measures of past commits: few and small, so that each takes a minute."""
