"""What there is, by name, and the replay of scripts."""

from __future__ import annotations

from typing import Any

from coapace import _native
from coapace._arguments import AnyMechanism, name


def scenarios() -> list[str]:
    """Return the names of the built-in scenarios.

    >>> "nb-iot" in scenarios()
    True
    """
    return _native.scenarios()


def mechanisms() -> dict[str, str]:
    """Return every mechanism with a sentence about it.

    >>> "cocoa" in mechanisms()
    True
    """
    return dict(_native.mechanisms())


def trace(mechanism: AnyMechanism, script: Any) -> str:
    """Replay a script of events through a mechanism, as ``coapace trace`` does.

    ``script`` is CSV, or a data frame of pandas or polars, with the columns ``at_ms``, ``event`` (start, timeout, ack, reset,
    giveup), ``draw``, ``answered`` and ``exchange``; the last three may be left out. Returns CSV with ``at_ms``, ``event``,
    ``timeout_ms``, ``rto_ms`` and ``next_ms``.

    >>> print(trace("cocoa", "at_ms,event\\n0,start\\n600,ack\\n"), end="")
    at_ms,event,timeout_ms,rto_ms,next_ms
    0.000,start,2000.000,2000.000,
    600.000,ack,,1900.000,
    """
    if hasattr(script, "to_csv"):
        script = script.to_csv(index=False)
    elif hasattr(script, "write_csv"):
        script = script.write_csv()
    return _native.trace(name(mechanism), script)
