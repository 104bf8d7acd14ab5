"""``python -m rskc`` is the command ``rskc``."""

from rskc.cli import main

if __name__ == "__main__":
    main()
