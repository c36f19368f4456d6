"""Libraries that are used where they are installed."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def needed(module: str, extra: str) -> Any:
    """Return a module of an optional library. ``extra`` is the extra of this package that installs it.

    Raises ``ImportError`` with a line that says how to install it.

    >>> needed("json", "none").dumps(1)
    '1'
    """
    try:
        return import_module(module)
    except ImportError as missing:
        library = module.partition(".")[0]
        raise ImportError(f"{library} is not installed: pip install 'coapace[{extra}]'") from missing
