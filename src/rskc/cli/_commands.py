"""All commands, in the order of the help; importing a command registers it."""

import rskc.cli.fit
import rskc.cli.pages
import rskc.cli.predict
import rskc.cli.select
import rskc.cli.tour  # noqa: F401
from rskc.cli._app import app

__all__ = ["app"]
