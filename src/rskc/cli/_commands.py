"""All commands, in the order of the help; importing a command registers it."""

from rskc.cli import fit, pages, predict  # noqa: F401
from rskc.cli._app import app, command
from rskc.cli._console import Console

__all__ = ["app"]


@command("versions")
def versions(console: Console) -> None:
    """Print versions and the build, for a bug report."""
    from rskc.versions import environment, show_versions

    if not console.silent:
        show_versions()
    console.print_json(environment())
