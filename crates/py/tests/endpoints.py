"""What tests of clients and servers share: a loop that cannot hang, and a network that loses datagrams."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import pytest

T = TypeVar("T")
Address = tuple[str, int]


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine, for two minutes at most."""

    async def bounded() -> T:
        return await asyncio.wait_for(main, 120)

    return asyncio.run(bounded())


def installed(name: str) -> str:
    """Return the path of a program, or skip the test."""
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed")
    return path


class _Socket(asyncio.DatagramProtocol):
    def __init__(self, received: Callable[[bytes, Address], None]) -> None:
        self.received = received

    def datagram_received(self, data: bytes, addr: Address) -> None:
        self.received(data, addr)


class Relay:
    """Passes datagrams between one client and a server, and loses those that it is told to.

    ``loses(to_server, nth)`` says whether a datagram is lost, where ``nth`` counts those of its direction from 0.
    """

    def __init__(self, server: str, loses: Callable[[bool, int], bool]) -> None:
        host, port = server.rsplit(":", 1)
        self.server = (host, int(port))
        self.loses = loses
        self.seen = {True: 0, False: 0}
        self.lost = 0
        self.client: Address | None = None
        self.near: asyncio.DatagramTransport | None = None
        self.far: asyncio.DatagramTransport | None = None

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[str]:
        """Yield the address that stands for the server's."""
        loop = asyncio.get_running_loop()
        self.near, _ = await loop.create_datagram_endpoint(lambda: _Socket(self.from_client), ("127.0.0.1", 0))
        self.far, _ = await loop.create_datagram_endpoint(lambda: _Socket(self.from_server), ("127.0.0.1", 0))
        try:
            yield "127.0.0.1:{}".format(self.near.get_extra_info("sockname")[1])
        finally:
            self.near.close()
            self.far.close()

    def passes(self, to_server: bool) -> bool:
        lost = self.loses(to_server, self.seen[to_server])
        self.seen[to_server] += 1
        self.lost += lost
        return not lost

    def from_client(self, data: bytes, address: Address) -> None:
        self.client = address
        if self.passes(True) and self.far is not None:
            self.far.sendto(data, self.server)

    def from_server(self, data: bytes, address: Address) -> None:
        if self.client is not None and self.passes(False) and self.near is not None:
            self.near.sendto(data, self.client)
