"""Coapace's mechanisms in aiocoap.

    import aiocoap, coapace.aiocoap

    context = await aiocoap.Context.create_client_context()
    control = coapace.aiocoap.install(context, "cocoa")
    response = await context.request(aiocoap.Message(code=aiocoap.GET, uri="coap://[::1]/")).response
    print(control.remotes[response.remote].rto)

The timeouts of confirmable messages are then those of the mechanism, for each remote with what was learned of it. Everything else is
aiocoap's: requests, Observe, Block-wise, OSCORE, logging. ``docs/aiocoap.md`` says what is kept and what changes.
"""

from __future__ import annotations

import random
import warnings
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from coapace._extras import needed
from coapace._native import Exchange, Mechanism

needed("aiocoap", "aiocoap")

from aiocoap import Context, error
from aiocoap.messagemanager import MessageManager
from aiocoap.numbers.codes import EMPTY
from aiocoap.numbers.types import CON, RST

#: An address of aiocoap, such as ``response.remote``: an ``EndpointAddress``.
Remote = Any
#: A confirmable message that waits for its turn, and what is called if it is refused.
Waiting = tuple[Any, Callable[[], None]]

#: The longest timeout that a silent remote imposes (RFC 8085 §3.1.1), in seconds.
_LONGEST = 60.0
#: The markings that aiocoap's messages can carry.
_CARRIED = ("none", "token", "token-on-retransmit")


@dataclass(frozen=True)
class Gauges:
    """What a mechanism knows of a remote. Times are in seconds."""

    mechanism: str
    #: The estimate that timeouts start from, before dither.
    rto: float
    #: The smoothed round-trip time; None before the first sample.
    srtt: float | None
    #: The variation of the round-trip time; None before the first sample.
    rttvar: float | None
    #: The confirmable messages that are under way.
    outstanding: int
    #: The confirmable messages that wait for their turn.
    waiting: int


class Control:
    """Mechanisms that are installed in a context."""

    def __init__(self, managers: list[_Manager]) -> None:
        self._managers = managers

    @property
    def remotes(self) -> dict[Remote, Gauges]:
        """What is known of every remote, by its address, such as ``response.remote``."""
        return {path.remote: path.gauges() for manager in self._managers for path in manager.coapace.paths()}

    def uninstall(self) -> None:
        """Give messages to aiocoap's own timers again. What is under way, or waits for that, ends as it began."""
        for manager in self._managers:
            manager.coapace.close()


def install(context: Context, mechanism: str | Callable[[Remote], str | None], *, limit: int = 1000) -> Control:
    """Let a mechanism decide the timeouts of the confirmable messages of a context.

    ``mechanism`` is ``"NAME"`` or ``"NAME:parameter=value,…"`` for all remotes, or a function that returns one for a remote, or None
    for aiocoap's own timers. A remote is an ``EndpointAddress`` of aiocoap. What was learned of ``limit`` remotes is kept while nothing
    is under way to them; the one that was used least recently is forgotten first.

    Raises ``ValueError`` if there is no such mechanism, if one is installed already, or if the context has no transport over
    datagrams; others need no retransmissions.
    """
    choose: Callable[[Remote], str | None]
    if isinstance(mechanism, str):
        Mechanism(mechanism)  # is there one?
        choose = lambda _: mechanism
    else:
        choose = mechanism
    if limit < 0:
        raise ValueError(f"limit is {limit}, but must be 0 or more")
    interfaces = (getattr(interface, "token_interface", None) for interface in context.request_interfaces)
    managers: list[Any] = [manager for manager in interfaces if isinstance(manager, MessageManager)]
    if not managers:
        raise ValueError("the context has no transport over datagrams: retransmissions are needed nowhere")
    if any(isinstance(manager, _Manager) and not manager.coapace.closed for manager in managers):
        raise ValueError("a mechanism is installed already: uninstall it first")
    for manager in managers:
        busy = manager.coapace.busy if isinstance(manager, _Manager) else {}
        manager.__class__ = _Manager
        manager.coapace = _Paths(choose, limit, busy)
    return Control(managers)


@dataclass
class _Open:
    """A confirmable message that is under way."""

    exchange: Exchange
    token: bytes
    marking: str
    #: When each transmission departed, and the timeout that was armed.
    departures: list[tuple[float, float]]

    def mark(self) -> bytes:
        """Return what follows the token in the next transmission."""
        ordinal = len(self.departures) - 1
        marked = self.marking == "token" or (self.marking == "token-on-retransmit" and ordinal > 0)
        return bytes([ordinal]) if marked else b""

    def ordinal(self, answer: Any) -> int | None:
        """Return the transmission that an answer names by its token; None if it names none."""
        if self.marking == "none" or answer.code is EMPTY:
            return None
        if answer.token == self.token:
            return 0 if self.marking == "token-on-retransmit" else None
        named = answer.token[-1] if answer.token[:-1] == self.token else len(self.departures)
        return named if named < len(self.departures) else None


@dataclass
class _Path:
    """What is known of a remote, and what is under way to it."""

    remote: Remote
    text: str
    mechanism: Mechanism
    open: dict[int, _Open] = field(default_factory=dict)
    waiting: deque[Waiting] = field(default_factory=deque)
    #: The timer of the first that waits, where the mechanism paces.
    timer: Any = None
    #: True if a last timeout passed, and no answer has come since.
    silent: bool = False
    #: True if the remote was seen to answer each copy with the mark of that copy. RFC 7252 §4.5 lets it repeat its first answer.
    answers_each: bool = False
    #: The last answer that named a transmission of several: the Message ID, what was open, and that ordinal.
    answered: tuple[int, _Open, int] | None = None
    #: True if its mechanism was uninstalled, and ends what is under way.
    ends: bool = False

    def gauges(self) -> Gauges:
        """Return what is shown of it."""
        known = self.mechanism
        return Gauges(self.text, known.rto, known.srtt, known.rttvar, len(self.open), len(self.waiting))

    def start(self, message: Any, now: float) -> float:
        """Start an exchange. Return the timeout to arm."""
        draw, marking = random.random(), self.mechanism.marking
        markable = message.code.is_request() and message.opt.observe is None and len(message.token) < 8
        if not markable or marking not in _CARRIED:
            marking = "none"
        exchange = self.mechanism.start(now, draw)
        timeout = max(exchange.timeout, self.floor(message.transport_tuning, 0, draw))
        self.open[message.mid] = _Open(exchange, message.token, marking, [(now, timeout)])
        return timeout

    def retransmit(self, message: Any, now: float, counter: int) -> float:
        """Back off for the retransmission number ``counter``, 1 for the first. Return the timeout to arm."""
        draw, tuning, opened = random.random(), message.transport_tuning, self.open[message.mid]
        timeout = self.mechanism.retransmit(opened.exchange, now, draw)
        if counter > tuning.MAX_RETRANSMIT:
            timeout = max(0.0, opened.departures[0][0] + tuning.MAX_TRANSMIT_WAIT - now)
        else:
            timeout = max(timeout, self.floor(tuning, counter, draw))
        opened.departures.append((now, timeout))
        return timeout

    def floor(self, tuning: Any, counter: int, draw: float) -> float:
        """Return the least timeout: RFC 7252's if the remote is silent."""
        if not self.silent:
            return 0.0
        dither = 1 + draw * (tuning.ACK_RANDOM_FACTOR - 1)
        return float(min(tuning.ACK_TIMEOUT * 2**counter * dither, _LONGEST))

    def answer(self, message: Any, now: float) -> None:
        """Take an acknowledgement or a Reset, and learn from it."""
        opened = self.open.pop(message.mid, None)
        if opened is None:
            return self.answer_again(message)
        self.silent = False
        if message.mtype is RST:
            return self.mechanism.reset(opened.exchange, now)
        ordinal, last = opened.ordinal(message), len(opened.departures) - 1
        if ordinal is not None and last > 0 and not self.answers_each:
            self.answered = (message.mid, opened, ordinal)
            # A repeated answer names the first copy that arrived. It may answer a later one.
            departure, timeout = opened.departures[ordinal]
            if ordinal != last and now - departure >= timeout:
                ordinal = None
        self.mechanism.acknowledge(opened.exchange, now, ordinal)

    def answer_again(self, message: Any) -> None:
        """Learn from a second answer whether the remote answers each copy with its mark."""
        if self.answered is None or self.answered[0] != message.mid:
            return
        ordinal = self.answered[1].ordinal(message)
        if ordinal is not None and ordinal != self.answered[2]:
            self.answers_each, self.answered = True, None

    def give_up(self, mid: int, now: float) -> None:
        """End an exchange after its last timeout, and drop what waits, as aiocoap does."""
        self.mechanism.give_up(self.open.pop(mid).exchange, now)
        self.silent = True
        self.drop()

    def abandon(self, now: float) -> None:
        """End everything without an answer."""
        while self.open:
            self.mechanism.cancel(self.open.popitem()[1].exchange, now)
        self.drop()

    def drop(self) -> None:
        """Drop what waits."""
        self.waiting.clear()
        self.sleep()

    def sleep(self) -> None:
        """Stop the timer of what waits."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


class _Paths:
    """The remotes of a message manager. Those with nothing under way are forgotten beyond a limit, the idlest first."""

    def __init__(self, choose: Callable[[Remote], str | None], limit: int, busy: dict[Remote, _Path]) -> None:
        self.choose, self.limit, self.busy, self.closed = choose, limit, busy, False
        self.idle: OrderedDict[Remote, _Path] = OrderedDict()

    def paths(self) -> list[_Path]:
        """Return all of them."""
        return [*self.busy.values(), *self.idle.values()]

    def known(self, remote: Remote) -> _Path | None:
        """Return the path of a remote, if there is one."""
        return self.busy.get(remote) or self.idle.get(remote)

    def enter(self, remote: Remote) -> _Path | None:
        """Return the path of a message that is to depart; None if aiocoap's timers are for it."""
        path = self.busy.get(remote) or self.idle.pop(remote, None)
        if path is None:
            text = None if self.closed else self.choose(remote)
            if text is None:
                return None
            path = _Path(remote, text, Mechanism(text))
            marking = path.mechanism.marking
            if marking not in _CARRIED:
                warnings.warn(f"{text} marks by {marking}, which aiocoap cannot carry: it runs without", stacklevel=2)
        self.busy[remote] = path
        return path

    def settle(self, path: _Path) -> None:
        """Note that something is over."""
        if path.open or path.waiting:
            return
        if self.busy.pop(path.remote, None) is not None and not path.ends:
            self.idle[path.remote] = path
            while len(self.idle) > self.limit:
                self.idle.popitem(last=False)

    def close(self) -> None:
        """Forget what was learned, and take no further remote."""
        self.closed = True
        self.idle.clear()
        for path in self.busy.values():
            path.ends = True


class _Manager(MessageManager):  # type: ignore[misc] # aiocoap has no types
    """aiocoap's message manager with a mechanism for each remote.

    Managers are made by aiocoap and become of this class when a mechanism is installed. A remote without a path has aiocoap's timers.
    """

    coapace: _Paths

    def _send_initially(self, message: Any, messageerror_monitor: Any = None) -> None:
        own = message.mtype is CON and message.remote not in self._backlogs
        path = self.coapace.enter(message.remote) if own else None
        if path is None:
            super()._send_initially(message, messageerror_monitor)
        else:
            path.waiting.append((message, messageerror_monitor))
            self._admit(path)

    def _admit(self, path: _Path) -> None:
        """Let messages depart, as far as NSTART and pacing allow."""
        path.sleep()
        try:
            while path.waiting and len(path.open) < (path.mechanism.nstart or 1):
                pause = path.mechanism.pause(self.loop.time())
                if pause > 0:
                    path.timer = self.loop.call_later(pause, self._admit, path)
                    break
                super()._send_initially(*path.waiting.popleft())
        finally:
            self.coapace.settle(path)

    def _add_exchange(self, message: Any, messageerror_monitor: Any) -> None:
        path = self.coapace.busy.get(message.remote)
        if path is None:
            return super()._add_exchange(message, messageerror_monitor)  # type: ignore[no-any-return]
        timeout = path.start(message, self.loop.time())
        timer = self._schedule_retransmit(message, timeout, 0)
        self._active_exchanges[message.remote, message.mid] = (messageerror_monitor, timer)
        self.log.debug("Exchange added, message ID: %d, timeout %g s.", message.mid, timeout)

    def _retransmit(self, message: Any, timeout: float, retransmission_counter: int) -> None:
        path = self.coapace.busy.get(message.remote)
        if path is None or message.mid not in path.open:
            return super()._retransmit(message, timeout, retransmission_counter)  # type: ignore[no-any-return]
        now, tuning, counter = self.loop.time(), message.transport_tuning, retransmission_counter
        key = (message.remote, message.mid)
        monitor, _ = self._active_exchanges[key]
        elapsed = now - path.open[message.mid].departures[0][0]
        if counter >= tuning.MAX_RETRANSMIT and elapsed >= _least_wait(tuning):
            del self._active_exchanges[key]
            path.give_up(message.mid, now)
            self.coapace.settle(path)
            self.log.info("Exchange timed out trying to transmit %s", message)
            gone = error.ConRetransmitsExceeded("Retransmissions exceeded")
            self.token_manager.dispatch_error(gone, message.remote)
            return
        # All copies of a fast mechanism have departed: one more does when RFC 7252's last would.
        span = tuning.MAX_TRANSMIT_SPAN if tuning.MAX_RETRANSMIT else tuning.MAX_TRANSMIT_WAIT
        if counter >= tuning.MAX_RETRANSMIT and elapsed < span:
            timer = self._schedule_retransmit(message, span - elapsed, counter)
        else:
            timeout = path.retransmit(message, now, counter + 1)
            self.log.info("Retransmission, Message ID: %d, timeout %g s.", message.mid, timeout)
            self._send_via_transport(message)
            timer = self._schedule_retransmit(message, timeout, counter + 1)
        self._active_exchanges[key] = (monitor, timer)

    def _send_via_transport(self, message: Any) -> None:
        path = self.coapace.busy.get(message.remote) if message.mtype is CON else None
        opened = path.open.get(message.mid) if path is not None else None
        if opened is None:
            return super()._send_via_transport(message)  # type: ignore[no-any-return]
        message.token = opened.token + opened.mark()
        try:
            super()._send_via_transport(message)
        finally:
            message.token = opened.token

    def _remove_exchange(self, message: Any) -> None:
        path = self.coapace.known(message.remote)
        if path is not None:
            path.answer(message, self.loop.time())
        super()._remove_exchange(message)

    def _continue_backlog(self, remote: Remote) -> None:
        path = self.coapace.busy.get(remote)
        if path is None:
            super()._continue_backlog(remote)
        else:
            self._admit(path)

    def _process_response(self, response: Any) -> bool:
        known, token = self.token_manager.outgoing_requests or {}, response.token
        if (token, response.remote) not in known and (token[:-1], response.remote) in known:
            response.token = token[:-1]  # the rest is the mark
        return bool(super()._process_response(response))

    def dispatch_error(self, problem: Any, remote: Remote) -> None:
        path = self.coapace.busy.get(remote)
        if path is not None:
            path.abandon(self.loop.time())
            self.coapace.settle(path)
        super().dispatch_error(problem, remote)

    async def shutdown(self) -> None:
        for path in self.coapace.busy.values():
            path.abandon(self.loop.time())
        self.coapace.busy.clear()
        await super().shutdown()


def _least_wait(tuning: Any) -> float:
    """Return the shortest time after which RFC 7252 gives up: the sum of its timeouts without dither."""
    return float(tuning.ACK_TIMEOUT * (2 ** (tuning.MAX_RETRANSMIT + 1) - 1))
