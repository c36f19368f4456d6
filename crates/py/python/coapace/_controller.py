"""Mechanisms written in Python."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal

from coapace import _native
from coapace._native import Cue, Sample

#: The end of an exchange.
Outcome = Literal["acked", "reset", "cancelled", "given_up"]


class Controller(ABC):
    """A mechanism for one destination: what it has learned, and three steps of an exchange.

    The simulator makes one object of the class, without arguments, for each destination. All times are in seconds.

    >>> class Patient(Controller):
    ...     '''Waits 5 to 7.5 s, and half as long again each time.'''
    ...
    ...     rto = 5.0
    ...
    ...     def on_start(self, cue):
    ...         first = cue.dither(self.rto)
    ...         return [first], first
    ...
    ...     def on_retransmit(self, exchange, cue):
    ...         exchange[0] *= 1.5
    ...         return exchange[0]
    ...
    ...     def on_end(self, exchange, outcome, sample, cue):
    ...         pass
    >>> register("patient", Patient)
    >>> import coapace
    >>> results = coapace.run("lossy-lan", ["default", "patient"], seeds=1, progress=False)
    >>> results.cells["mechanism"]
    ['default', 'patient']
    """

    #: How a transmission carries its ordinal: none, token, token-on-retransmit, option or fresh-message-id.
    marking: ClassVar[str] = "none"
    #: Whether the last retransmission is waited for (RFC 7252 §4.2).
    final_wait: ClassVar[bool] = True
    #: The upper bound of timeouts.
    max_timeout: ClassVar[float] = 60.0

    #: The estimate that timeouts start from, before dither. Non-confirmable messages are this far apart.
    rto: float = 2.0
    #: The smoothed round-trip time; None before it is known.
    srtt: float | None = None
    #: The variation of the round-trip time; None before it is known.
    rttvar: float | None = None

    @abstractmethod
    def on_start(self, cue: Cue) -> tuple[Any, float]:
        """Start an exchange, as its first transmission departs. Return an object that stands for it, and the timeout to arm."""

    @abstractmethod
    def on_retransmit(self, exchange: Any, cue: Cue) -> float:
        """Back off, as the timeout has passed and a retransmission departs. Return the next timeout to arm."""

    @abstractmethod
    def on_end(self, exchange: Any, outcome: Outcome, sample: Sample | None, cue: Cue) -> None:
        """End an exchange and learn from it. There is a sample if it was acknowledged."""


def register(name: str, controller: type[Controller], summary: str | None = None) -> None:
    """Give a class a name, by which it is run beside all others. A class of Python that had the name before is replaced.

    Runs with it are as repeatable as all others, if the class draws no random numbers but those of its cues. Each step is a call of
    Python, which one thread makes at a time. An exception in a step ends the run, and is raised there.

    Raises ``ValueError`` if the name is that of a mechanism of Coapace, or malformed: lower-case letters, digits, hyphens.
    """
    described = summary if summary is not None else (controller.__doc__ or name).strip().splitlines()[0]
    _native.register(name, controller, described)
