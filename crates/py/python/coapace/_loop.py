"""The tie of a client or server to an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from coapace import _native
from coapace._errors import NetworkError


class Tie:
    """Ties work of Rust to the event loop in which it is first waited for."""

    def __init__(self, mailbox: _native.Mailbox) -> None:
        self._mailbox = mailbox
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: set[asyncio.Future[Any]] = set()
        self._is_closed = False

    def join(self) -> asyncio.AbstractEventLoop:
        """Return the running loop, which takes the results from now on."""
        loop = asyncio.get_running_loop()
        if self._is_closed:
            raise _closed()
        if self._loop is None:
            loop.add_reader(self._mailbox.fileno(), self._mailbox.deliver)
            self._loop = loop
        elif self._loop is not loop:
            raise RuntimeError("clients and servers belong to one event loop; make another for this one")
        return loop

    async def wait(self, start: Callable[[asyncio.Future[Any]], _native.Call]) -> Any:
        """Start work and return its result. The work is cancelled with the task that waits for it."""
        future = self.join().create_future()
        call = start(future)
        self._waiting.add(future)
        try:
            return await future
        finally:
            self._waiting.discard(future)
            call.cancel()

    def close(self) -> None:
        """Take what is there, and end the work that has no result yet."""
        if self._loop is None or self._is_closed:
            self._is_closed = True
            return
        self._is_closed = True
        self._mailbox.deliver()
        self._loop.remove_reader(self._mailbox.fileno())
        for future in self._waiting:
            if not future.done():
                future.set_exception(_closed())


def _closed() -> NetworkError:
    return NetworkError("the client is closed, or the server; make another")
