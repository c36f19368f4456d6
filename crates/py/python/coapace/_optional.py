"""Packages that are used where they are installed."""

from __future__ import annotations

import importlib
from typing import Any


def needed(module: str, extra: str) -> Any:
    """Return a module, or say how to install it.

    >>> needed("zzz", "polars")
    Traceback (most recent call last):
    ImportError: this needs zzz: pip install 'coapace[polars]'
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ImportError(f"this needs {module.split('.')[0]}: pip install 'coapace[{extra}]'") from None
