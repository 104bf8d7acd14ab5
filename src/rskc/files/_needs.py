"""Packages that only some files need."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class MissingPackageError(ImportError):
    """A package that is needed for a file is not installed; the message says what installs it."""


def needed(package: str, purpose: str, extra: str) -> Any:
    """Import a package, or say which extra brings it."""
    try:
        return import_module(package)
    except ImportError as error:
        message = f'{package} is needed {purpose}; pip install "rskc[{extra}]" brings it.'
        raise MissingPackageError(message) from error
