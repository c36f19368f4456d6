"""The client."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, TypedDict

from coapace import _native
from coapace._errors import NetworkError
from coapace._loop import Tie
from coapace._native import Remote, Response

if TYPE_CHECKING:
    from coapace._native import Time
    from typing_extensions import Self, Unpack

#: An option: its number, and its value as bytes, text, or a number.
Option = tuple[int, "bytes | str | int"]

#: The number of the option No-Response.
_NO_RESPONSE = 258

#: The longest wait for the server's answer to the end of an observation, in seconds.
_FAREWELL = 3.0


class Terms(TypedDict, total=False):
    """What may be said of any request; see :meth:`Client.request`."""

    content_format: int | None
    accept: int | None
    confirmable: bool
    timeout: Time | None
    options: Iterable[Option]


class _Asked(NamedTuple):
    """A request, as the native client reads it."""

    method: str
    uri: str
    payload: bytes | str = b""
    content_format: int | None = None
    accept: int | None = None
    confirmable: bool = True
    timeout: Time | None = None
    options: Iterable[Option] = ()
    once: bool = False


class Client:
    """Sends requests to any number of servers, with a mechanism of congestion control.

    ``cc`` is ``NAME`` or ``NAME:parameter=value,…``, as on the command line. ``ack_timeout`` is ACK_TIMEOUT in seconds, which is
    the initial RTO of mechanisms that measure. ``max_retransmit`` and ``nstart`` are MAX_RETRANSMIT and NSTART (RFC 7252 §4.8).
    ``bulk`` is the mechanism for the blocks of a body, of which several are under way; ``None`` sends one after the other. Without
    ``q_block``, payloads are sent so, too, also to servers that take Q-Block1 (RFC 9177).
    ``block_size`` is the largest block of either side, 16 to 1024 bytes. ``psk`` is the identity and the key for ``coaps``. The
    other schemes are ``coap``, and ``coap+tcp`` and ``coap+ws``, whose connections have no mechanism. ``proxy`` is the URI of a
    forward proxy (RFC 7252 §5.7.2), such as ``coap://[::1]:5700``, that all requests go to. It asks the servers. If the network
    says that nobody listens at a port, a request is retransmitted as after silence; with ``fail_fast`` it ends at once.

    Any number of tasks may use a client at once. NSTART and the mechanism bound the exchanges with one destination, and further
    requests wait. A client belongs to the event loop in which it is first used. Leaving ``async with`` closes it.

    >>> import asyncio
    >>> from coapace import Client, Server
    >>> async def main() -> None:
    ...     async with Server("127.0.0.1:0") as server, Client(cc="cocoa") as client:
    ...         @server.resource("/greetings/{name}")
    ...         def greet(request):
    ...             return f"Hello, {request.parameter('name')}!"
    ...
    ...         response = await client.get(server.uri + "/greetings/you")
    ...         print(response.code, response.text, response.transmissions)
    ...         print(client.remotes[0].exchanges)
    >>> asyncio.run(main())
    2.05 Hello, you! 1
    1

    Raises ``ValueError`` with a line that says which argument is wrong.
    """

    def __init__(
        self,
        cc: str = "default",
        *,
        bulk: str | None = "tide",
        q_block: bool = True,
        ack_timeout: Time | None = None,
        max_retransmit: int | None = None,
        nstart: int | None = None,
        block_size: int | None = None,
        psk: tuple[str | bytes, str | bytes] | None = None,
        proxy: str | None = None,
        fail_fast: bool = False,
    ) -> None:
        self._cc = cc
        self._native = _native.NativeClient(
            cc, bulk, q_block, ack_timeout, max_retransmit, nstart, block_size, psk, proxy, fail_fast
        )
        self._tie = Tie(self._native.mailbox)

    async def request(
        self,
        method: str,
        uri: str,
        payload: bytes | str = b"",
        *,
        content_format: int | None = None,
        accept: int | None = None,
        confirmable: bool = True,
        timeout: Time | None = None,
        options: Iterable[Option] = (),
    ) -> Response:
        """Send a request and return the response, whatever its code.

        Bodies of any size are sent and received in blocks (RFC 7959). ``content_format`` is that of the payload, and ``accept`` that
        of the response. ``options`` are further ones, as pairs of number and value. Without ``timeout``, in seconds, the mechanism
        and MAX_RETRANSMIT say when to give up. If the task is cancelled, so is the exchange: it is not retransmitted any more.

        Raises ``Timeout``, ``Reset`` or another ``NetworkError`` if there is no response, and ``ValueError`` for a URI, method or
        option that is none.
        """
        asked = _Asked(method, uri, payload, content_format, accept, confirmable, timeout, tuple(options))
        response: Response = await self._tie.wait(lambda future: self._native.request(future, asked))
        return response

    async def get(self, uri: str, **terms: Unpack[Terms]) -> Response:
        """Send a GET, like :meth:`request`."""
        return await self.request("GET", uri, **terms)

    async def delete(self, uri: str, **terms: Unpack[Terms]) -> Response:
        """Send a DELETE, like :meth:`request`."""
        return await self.request("DELETE", uri, **terms)

    async def post(self, uri: str, payload: bytes | str = b"", **terms: Unpack[Terms]) -> Response:
        """Send a POST, like :meth:`request`."""
        return await self.request("POST", uri, payload, **terms)

    async def put(self, uri: str, payload: bytes | str = b"", **terms: Unpack[Terms]) -> Response:
        """Send a PUT, like :meth:`request`."""
        return await self.request("PUT", uri, payload, **terms)

    async def fetch(self, uri: str, payload: bytes | str = b"", **terms: Unpack[Terms]) -> Response:
        """Send a FETCH (RFC 8132 §2), like :meth:`request`."""
        return await self.request("FETCH", uri, payload, **terms)

    async def patch(self, uri: str, payload: bytes | str = b"", **terms: Unpack[Terms]) -> Response:
        """Send a PATCH (RFC 8132 §3), like :meth:`request`."""
        return await self.request("PATCH", uri, payload, **terms)

    async def ipatch(self, uri: str, payload: bytes | str = b"", **terms: Unpack[Terms]) -> Response:
        """Send an iPATCH (RFC 8132 §3), like :meth:`request`."""
        return await self.request("IPATCH", uri, payload, **terms)

    async def ping(self, uri: str, timeout: float | None = None) -> float:
        """Send an empty message (RFC 7252 §4.3), and return the time until the answer, in seconds. The path has no effect.

        Raises the exceptions of :meth:`request`.
        """
        return (await self.request("0.00", uri, timeout=timeout)).elapsed

    def observe(self, uri: str, *, once: bool = False, **terms: Unpack[Terms]) -> Observation:
        """Observe a resource (RFC 7641), with GET. The observation begins when it is entered or iterated over.

        A server that is unavailable for a time, such as that of a restart, answers 5.03. Then the client registers again after its
        Max-Age, or 5 s, and at growing intervals for some 25 minutes. With ``once`` the 5.03 is the last response.
        """
        return Observation(self, _Asked("GET", uri, once=once, **terms))

    def group(
        self,
        method: str,
        uri: str,
        payload: bytes | str = b"",
        *,
        leisure: Time = 5.0,
        no_response: int | None = None,
        **terms: Unpack[Terms],
    ) -> Group:
        """Ask the members of a group, such as ``coap://[ff02::fd%25eth0]/x``: once, non-confirmable, over UDP (RFC 7252 §8).

        The request is sent when the result is entered or iterated over. Members spread their answers over ``leisure``, in seconds;
        answers are awaited a second longer, or for ``timeout``. ``no_response`` is the sum of 2 for no answers of 2.xx, 8 for none of
        4.xx and 16 for none of 5.xx (RFC 7967); with 26 none is awaited.
        """
        if no_response is not None:
            terms["options"] = (*terms.get("options", ()), (_NO_RESPONSE, no_response))
        return Group(self, _Asked(method, uri, payload, **terms), leisure)

    @property
    def remotes(self) -> list[Remote]:
        """The destinations with which an exchange has ended: RTO, SRTT and counts of each."""
        return self._native.remotes()

    async def close(self) -> None:
        """End all that is under way with ``NetworkError``, and close the sockets. Closing again has no effect."""
        self._native.close()
        self._tie.close()

    async def __aenter__(self) -> Self:
        self._tie.join()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"Client({self._cc!r})"


class Observation:
    """The representations of a resource: the present one, and then each as it changes.

    Only the newest is kept, so a slow loop does not see all of them. The iteration ends when the server ends the observation, or
    after the first representation if the resource cannot be observed. Leaving ``async with`` deregisters and waits for the
    server's answer, three seconds at most.

    >>> import asyncio
    >>> from coapace import Client, Server
    >>> async def main() -> None:
    ...     async with Server("127.0.0.1:0") as server, Client() as client:
    ...         count = 0
    ...         @server.resource("/count", observable=True)
    ...         def read(request):
    ...             return str(count)
    ...
    ...         async with client.observe(server.uri + "/count") as representations:
    ...             async for response in representations:
    ...                 print(response.text)
    ...                 if count == 2:
    ...                     break
    ...                 count += 1
    ...                 server.notify("/count")
    >>> asyncio.run(main())
    0
    1
    2
    """

    def __init__(self, client: Client, asked: _Asked) -> None:
        self._client = client
        self._asked = asked
        self._native: _native.NativeObservation | None = None
        #: The response to the registration, until it is taken.
        self._first: Response | None = None
        self._is_over = False

    async def _begin(self) -> None:
        native, asked = self._client._native, self._asked
        begun = await self._client._tie.wait(lambda future: native.observe(future, asked))
        self._native, self._first = begun

    async def __aenter__(self) -> Self:
        await self._begin()
        return self

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Response:
        """Return the next representation.

        Raises ``NotObserved`` if the server refuses the registration, and the exceptions of :meth:`Client.request`.
        """
        if self._is_over:
            raise StopAsyncIteration
        if self._native is None:
            await self._begin()
        if self._first is not None:
            first, self._first = self._first, None
            return first
        assert self._native is not None
        response: Response | None = await self._client._tie.wait(self._native.next)
        if response is None:
            self._is_over = True
            raise StopAsyncIteration
        return response

    async def end(self) -> None:
        """Deregister, and wait for the server's answer, three seconds at most."""
        native, self._native, self._is_over = self._native, None, True
        if native is None:
            return
        try:
            await asyncio.wait_for(self._client._tie.wait(native.end), _FAREWELL)
        except (NetworkError, asyncio.TimeoutError):
            # Without an answer, the server gives up at a notification that nobody takes.
            pass

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.end()


class Group:
    """The answers of a group's members, in the order of arrival: pairs of the member's address and its response.

    A member with a large body is asked for the rest alone. If that fails, the iteration raises, and may go on with the next member. It
    ends when the time for answers is over. A request waits for those before it to the same group, as PROBING_RATE wants (RFC 7252
    §4.7).
    """

    def __init__(self, client: Client, asked: _Asked, leisure: Time) -> None:
        self._client = client
        self._asked = asked
        self._leisure = leisure
        self._native: _native.NativeGroup | None = None

    async def _begin(self) -> _native.NativeGroup:
        native, asked, leisure = self._client._native, self._asked, self._leisure
        begun: _native.NativeGroup = await self._client._tie.wait(
            lambda future: native.group(future, asked, leisure)
        )
        return begun

    async def __aenter__(self) -> Self:
        self._native = await self._begin()
        return self

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> tuple[str, Response]:
        """Return the next answer.

        Raises ``ValueError`` if the URI cannot be that of a group, and the exceptions of :meth:`Client.request`.
        """
        if self._native is None:
            self._native = await self._begin()
        answer: tuple[str, Response] | None = await self._client._tie.wait(self._native.next)
        if answer is None:
            raise StopAsyncIteration
        return answer

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._native is not None:
            self._native.end()
