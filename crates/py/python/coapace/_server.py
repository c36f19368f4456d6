"""The server."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from coapace import _native
from coapace._loop import Tie
from coapace._native import Request, Response

if TYPE_CHECKING:
    from typing_extensions import Self

#: The answer of a handler: a response, or its payload, or nothing.
Answer = Response | str | bytes | None

#: A function or coroutine function that answers requests.
Handler = Callable[[Request], "Answer | Awaitable[Answer]"]

_H = TypeVar("_H", bound=Handler)

#: The methods of RFC 7252 §12.1.1 and RFC 8132 §7.1, with the code of an answer that names none.
_METHODS = {
    "GET": "2.05",
    "POST": "2.04",
    "PUT": "2.04",
    "DELETE": "2.02",
    "FETCH": "2.05",
    "PATCH": "2.04",
    "IPATCH": "2.04",
}

_log = logging.getLogger("coapace.server")


class Server:
    """Answers requests with functions and coroutine functions.

    ``address`` is as in ``127.0.0.1:5683``; port 0 takes any free one, and ``[::]`` every address of the host. A scheme before it
    is ``coap``, ``coaps``, ``coap+tcp`` or ``coap+ws``. ``cc`` is the mechanism of separate responses and notifications. ``psk`` has
    the keys for ``coaps`` by identity. Beyond ``max_pending`` requests that wait for handlers, and for one resource half as many,
    further ones are answered 5.03.

    A handler gets a :class:`Request` and returns a :class:`Response`, or only its payload: text, bytes or None. The code then is
    2.05 for GET and FETCH, 2.02 for DELETE and 2.04 for others, and text has Content-Format 0. An exception is logged, and answered
    5.00. Handlers run in the event loop, so a plain function should not block; ``asyncio.to_thread`` helps. Acknowledgements,
    blocks, copies of requests and retransmissions are none of their business.

    >>> import asyncio
    >>> from coapace import Client, Response, Server
    >>> async def main() -> None:
    ...     values = {}
    ...     async with Server("127.0.0.1:0") as server, Client() as client:
    ...         @server.resource("/store/{name}")
    ...         async def get(request):
    ...             value = values.get(request.parameter("name"))
    ...             return value if value is not None else Response(code="4.04")
    ...
    ...         @server.resource("/store/{name}", "PUT")
    ...         def put(request):
    ...             values[request.parameter("name")] = request.payload
    ...
    ...         uri = server.uri + "/store/a"
    ...         for response in [await client.get(uri), await client.put(uri, "21.5"), await client.get(uri)]:
    ...             print(response.code, response.text)
    >>> asyncio.run(main())
    4.04 
    2.04 
    2.05 21.5

    Raises ``ValueError`` for an argument that is wrong, and ``OSError`` if the address cannot be had.
    """

    def __init__(
        self,
        address: str,
        *,
        cc: str = "default",
        psk: Mapping[str, str | bytes] | None = None,
        max_pending: int = 1024,
    ) -> None:
        self._native = _native.NativeServer(address, cc, None if psk is None else dict(psk), max_pending)
        self._tie = Tie(self._native.mailbox)
        self._routes: list[_native.Route] = []
        self._attributes: dict[str, dict[str, str]] = {}
        #: The handlers that wait for something.
        self._tasks: set[asyncio.Task[None]] = set()
        self._serving: asyncio.Task[None] | None = None
        self._has_begun = False

    def resource(
        self, path: str, methods: str | Iterable[str] = "GET", *, observable: bool = False, **attributes: str
    ) -> Callable[[_H], _H]:
        """Return a decorator that makes a function the handler of a path.

        A segment ``{name}`` of the path matches any, and ``request.parameter("name")`` returns it. ``observable`` resources can be
        observed with GET; see :meth:`notify`. ``attributes`` are those of the link in ``/.well-known/core`` (RFC 6690), such as
        ``rt="temperature"``. Resources are added before the body of ``async with`` first waits for something.

        Raises ``ValueError`` for an unknown method, and ``RuntimeError`` if the server is already running.
        """
        path = _absolute(path)
        wanted = [methods] if isinstance(methods, str) else list(methods)
        for method in wanted:
            if method.upper() not in _METHODS:
                raise ValueError(f'method is "{method}", but must be one of {", ".join(_METHODS)}')
        if observable and "GET" not in [method.upper() for method in wanted]:
            raise ValueError(f"{path} is observed with GET, which must be among its methods")
        if self._has_begun:
            raise RuntimeError(f"{path} comes too late; add resources before the body of async with first awaits")

        def add(handler: _H) -> _H:
            for method in wanted:
                self._routes.append((path, method, handler, observable and method.upper() == "GET"))
            self._attributes.setdefault(path, {}).update(attributes)
            return handler

        return add

    def notify(self, path: str) -> None:
        """Notify the observers of a resource: its handler is called again, once for all whose requests are equal.

        Changes that come faster than handlers or the network become one. Raises ``ValueError`` if the path is not observable.
        """
        path = _absolute(path)
        if not self._native.notify(path) and (path, True) not in [(route[0], route[3]) for route in self._routes]:
            raise ValueError(f"{path} cannot be observed; add it with observable=True")

    @property
    def address(self) -> str:
        """The address and port that the server is bound to."""
        return self._native.address

    @property
    def uri(self) -> str:
        """The URI of the server, without a path."""
        return self._native.uri

    async def serve_forever(self) -> None:
        """Wait until the server is closed. Raises ``NetworkError`` if the system ends it."""
        if self._serving is None:
            raise RuntimeError("the server does not serve yet; use it as in async with Server(…) as server")
        await asyncio.shield(self._serving)

    async def close(self) -> None:
        """Shut the server down. New requests are answered 5.03, and so are observers; handlers get two seconds to end."""
        self._native.shutdown()
        if self._serving is not None:
            if not self._has_begun:
                self._serving.cancel()
            await asyncio.wait([self._serving])
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        self._tie.close()

    async def __aenter__(self) -> Self:
        self._serving = self._tie.join().create_task(self._serve())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _serve(self) -> None:
        self._has_begun = True
        attributes = [(path, list(some.items())) for path, some in self._attributes.items()]
        await self._tie.wait(lambda future: self._native.serve(future, self._dispatch, self._routes, attributes))

    def _dispatch(self, handler: Handler, request: Request, reply: _native.Reply) -> None:
        """Call a handler. It is what the native server does with a request."""
        try:
            answer = handler(request)
            if not inspect.isawaitable(answer):
                reply.send(_response(request, answer))
                return
        except Exception:
            _fail(request, reply)
            return
        task = asyncio.ensure_future(_finish(answer, request, reply))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def __repr__(self) -> str:
        return f"<Server {self.uri}>"


async def _finish(answer: Awaitable[Answer], request: Request, reply: _native.Reply) -> None:
    """Wait for the answer of a coroutine function."""
    try:
        reply.send(_response(request, await answer))
    except Exception:
        _fail(request, reply)


def _fail(request: Request, reply: _native.Reply) -> None:
    """Log the exception of a handler, and answer 5.00."""
    _log.exception("the handler of %s %s failed", request.method, request.path)
    reply.send(Response(code="5.00"))


def _response(request: Request, answer: Answer) -> Response:
    """Return the response that an answer stands for."""
    if isinstance(answer, Response):
        return answer
    code = _METHODS[request.method.upper()]
    if isinstance(answer, str):
        return Response(answer, code, content_format=0)
    if answer is None or isinstance(answer, bytes):
        return Response(answer, code)
    raise TypeError(f"a handler returns a Response, str, bytes or None, not {type(answer).__name__}")


def _absolute(path: str) -> str:
    return path if path.startswith("/") else f"/{path}"
