"""What worker processes run first (internal); it imports next to nothing."""

import os
import threading
import time


def end_with(parent: int) -> None:
    """Let this process end soon after its parent, however that one ends."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    if os.getppid() == parent:  # and not a worker of somebody else
        threading.Thread(target=watch, daemon=True).start()
