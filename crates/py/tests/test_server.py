"""The server: handlers, routes, observers, errors, bounds."""

import asyncio
import contextlib
import logging
import subprocess

import pytest
from endpoints import Relay, installed, run

from coapace import Client, Request, Response, Server


def test_a_handler_sees_the_request() -> None:
    async def main() -> None:
        async with Server("127.0.0.1:0") as server, Client() as client:
            seen: list[Request] = []

            @server.resource("/a b/{x}/c", "POST")
            def keep(request: Request) -> None:
                seen.append(request)

            uri = server.uri + "/a%20b/%C3%A4/c?n=1&flag"
            response = await client.post(uri, "grüße", content_format=0, accept=50, options=[(2048, 7), (2050, "t")])
            (request,) = seen
            assert (response.code, response.payload) == ("2.04", b"")
            assert (request.method, request.path) == ("POST", "/a b/ä/c")
            assert (request.parameter("x"), request.parameter("y")) == ("ä", None)
            assert request.query == ["n=1", "flag"]
            assert [request.argument(name) for name in ("n", "flag", "m")] == ["1", "", None]
            assert (request.text, request.payload) == ("grüße", "grüße".encode())
            assert (request.content_format, request.accept) == (0, 50)
            assert {(2048, b"\x07"), (2050, b"t")} <= set(request.options)
            assert request.remote.startswith("127.0.0.1:") and request.identity is None
            assert repr(request) == "<Request POST /a b/ä/c, 7 bytes>"

    run(main())


def test_functions_and_coroutine_functions_answer_in_the_same_ways() -> None:
    async def main() -> None:
        async with Server("127.0.0.1:0") as server, Client() as client:
            answers = {"text": "a", "bytes": b"b", "none": None, "own": Response("c", "4.09", max_age=5)}

            @server.resource("/plain/{name}", ["GET", "DELETE"])
            def plain(request: Request) -> Response | str | bytes | None:
                return answers[request.parameter("name") or ""]

            @server.resource("/coroutine/{name}", ["GET", "DELETE"])
            async def coroutine(request: Request) -> Response | str | bytes | None:
                await asyncio.sleep(0)
                return answers[request.parameter("name") or ""]

            for kind in ("plain", "coroutine"):
                uri = f"{server.uri}/{kind}"
                told = [await client.get(f"{uri}/{name}") for name in answers]
                assert [one.code for one in told] == ["2.05", "2.05", "2.05", "4.09"]
                assert [one.payload for one in told] == [b"a", b"b", b"", b"c"]
                assert [one.content_format for one in told] == [0, None, None, None]
                assert told[3].max_age == 5
                assert (await client.delete(f"{uri}/none")).code == "2.02"

    run(main())


def test_paths_and_methods_without_handlers_are_answered_and_links_are_listed() -> None:
    async def main() -> None:
        async with Server("127.0.0.1:0") as server, Client() as client:
            server.resource("temperature", rt="temperature", observable=True)(lambda request: "21.5")
            server.resource("/x", "PUT", title="a value")(lambda request: None)
            assert (await client.get(server.uri + "/nothing")).code == "4.04"
            assert (await client.get(server.uri + "/x")).code == "4.05"
            links = await client.get(server.uri + "/.well-known/core")
            assert links.content_format == 40
            assert set(links.text.split(",")) == {'</temperature>;rt="temperature";obs', '</x>;title="a value"'}

    run(main())


def test_an_error_of_a_handler_is_logged_and_answered(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with Server("127.0.0.1:0") as server, Client() as client:

            @server.resource("/plain")
            def plain(request: Request) -> str:
                raise LookupError("secret")

            @server.resource("/coroutine")
            async def coroutine(request: Request) -> str:
                raise LookupError("secret")

            @server.resource("/number")  # type: ignore[type-var]
            def number(request: Request) -> int:
                return 5

            for path in ("/plain", "/coroutine", "/number"):
                response = await client.get(server.uri + path)
                assert (response.code, response.payload) == ("5.00", b"")

    with caplog.at_level(logging.ERROR, logger="coapace.server"):
        run(main())
    assert [record.getMessage() for record in caplog.records] == [
        f"the handler of GET /{name} failed" for name in ("plain", "coroutine", "number")
    ]
    assert "LookupError: secret" in caplog.text
    assert "a handler returns a Response, str, bytes or None, not int" in caplog.text


def test_a_slow_handler_answers_separately_and_holds_up_nobody() -> None:
    async def main() -> None:
        async with Server("127.0.0.1:0") as server, Client(nstart=2) as client:
            go = asyncio.Event()

            @server.resource("/slow")
            async def slow(request: Request) -> str:
                await go.wait()
                return "slow"

            server.resource("/fast")(lambda request: "fast")
            waiting = asyncio.ensure_future(client.get(server.uri + "/slow"))
            assert (await client.get(server.uri + "/fast")).text == "fast"
            # It is acknowledged after 200 ms.
            await asyncio.sleep(0.4)
            assert not waiting.done()
            go.set()
            response = await waiting
            assert (response.text, response.transmissions) == ("slow", 1)

    run(main())


def test_a_separate_response_is_sent_again_until_it_is_acknowledged() -> None:
    async def main() -> None:
        async with Server("127.0.0.1:0", cc="default:ack_timeout=100ms") as server, Client() as client:

            @server.resource("/slow")
            async def slow(request: Request) -> str:
                await asyncio.sleep(0.4)
                return "slow"

            # To the client: the acknowledgement, then the response, whose first copy is lost.
            relay = Relay(server.address, lambda to_server, nth: not to_server and nth == 1)
            async with relay.opened() as address:
                response = await client.get(f"coap://{address}/slow")
                assert (response.text, response.transmissions, relay.lost) == ("slow", 1, 1)

    run(main())


def test_a_copy_of_a_request_is_carried_out_once() -> None:
    async def main() -> None:
        async with Server("127.0.0.1:0") as server:
            count = 0

            @server.resource("/count", "POST")
            def add(request: Request) -> str:
                nonlocal count
                count += 1
                return str(count)

            # Every other response is lost: the first of each request.
            relay = Relay(server.address, lambda to_server, nth: not to_server and nth % 2 == 0)
            async with relay.opened() as address, Client(ack_timeout=0.1) as client:
                for number in range(1, 6):
                    response = await client.post(f"coap://{address}/count")
                    assert (response.text, response.transmissions) == (str(number), 2)
            assert (count, relay.lost) == (5, 5)

    run(main())


def test_twenty_observers_get_every_state_that_lasts() -> None:
    async def main() -> None:
        async with Server("127.0.0.1:0") as server:
            state = 0

            @server.resource("/state", observable=True)
            async def read(request: Request) -> str:
                return str(state)

            clients = [Client() for _ in range(20)]
            observations = [client.observe(server.uri + "/state") for client in clients]
            for state in range(4):
                if state > 0:
                    server.notify("state")
                told = await asyncio.gather(*(one.__anext__() for one in observations))
                assert {one.text for one in told} == {str(state)}
            for client in clients:
                await client.close()

    run(main())


def test_more_requests_than_places_are_answered_5_03() -> None:
    async def main() -> None:
        async with Server("127.0.0.1:0", max_pending=8) as server, Client(nstart=64) as client:
            go, count, under_way, most = asyncio.Event(), 0, 0, 0

            @server.resource("/wait")
            async def wait(request: Request) -> str:
                nonlocal count, under_way, most
                count += 1
                under_way += 1
                most = max(most, under_way)
                await go.wait()
                under_way -= 1
                return "done"

            calls = [asyncio.ensure_future(client.get(server.uri + "/wait")) for _ in range(40)]
            while sum(call.done() for call in calls) < 32:
                await asyncio.sleep(0.01)
            # The others have places, or wait for a second chance (RFC 9175).
            go.set()
            codes = [(await call).code for call in calls]
            assert set(codes) == {"2.05", "5.03"} and codes.count("5.03") >= 32
            assert codes.count("2.05") == count and most <= 8

    run(main())


def test_a_server_says_where_it_is_and_frees_its_port() -> None:
    async def main() -> None:
        async with Server("127.0.0.1:0") as server:
            assert server.uri == f"coap://{server.address}"
            with pytest.raises(OSError, match="is in use; name another port \\(0 takes any free one\\)"):
                Server(server.address)
            address = server.address
        async with Server(address) as again:
            assert again.address == address

    run(main())


def test_a_server_serves_until_it_is_closed() -> None:
    async def main() -> None:
        server = Server("127.0.0.1:0")
        with pytest.raises(RuntimeError, match="does not serve yet"):
            await server.serve_forever()

        @server.resource("/stop", "POST")
        async def stop(request: Request) -> str:
            closing.append(asyncio.ensure_future(server.close()))
            return "bye"

        closing: list[asyncio.Future[None]] = []
        async with server, Client() as client:
            assert (await client.post(server.uri + "/stop")).text == "bye"
            await server.serve_forever()
            await asyncio.gather(*closing)

    run(main())


def test_handlers_that_never_end_are_cancelled_when_the_server_is_closed() -> None:
    async def main() -> None:
        ended: list[str] = []
        async with Client() as client:
            async with Server("127.0.0.1:0") as server:
                begun = asyncio.Event()

                @server.resource("/never")
                async def never(request: Request) -> None:
                    begun.set()
                    try:
                        await asyncio.Event().wait()
                    finally:
                        ended.append(request.path)

                call = asyncio.ensure_future(client.get(server.uri + "/never"))
                await begun.wait()
            assert ended == ["/never"]
            call.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await call

    run(main())


@pytest.mark.parametrize(
    ("address", "arguments", "error", "sentence"),
    [
        ("localhost", {}, ValueError, "is not an address; write it like"),
        ("http://127.0.0.1:0", {}, ValueError, "expected coap, coaps"),
        ("coaps://127.0.0.1:0", {}, ValueError, "DTLS needs a key"),
        ("coap://127.0.0.1:0", {"psk": {"a": "b"}}, ValueError, "psk needs the scheme coaps"),
        ("127.0.0.1:0", {"cc": "coca"}, ValueError, "did you mean cocoa"),
        ("203.0.113.1:0", {}, OSError, "is not an address of this host"),
    ],
)
def test_a_server_that_cannot_be_is_told_why(
    address: str, arguments: dict[str, object], error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        Server(address, **arguments)  # type: ignore[arg-type]


def test_wrong_resources_are_told() -> None:
    async def main() -> None:
        async with Server("127.0.0.1:0") as server:
            with pytest.raises(ValueError, match='method is "GRAB", but must be one of GET'):
                server.resource("/x", "GRAB")
            with pytest.raises(ValueError, match="/x is observed with GET"):
                server.resource("/x", "PUT", observable=True)
            server.resource("/x")(lambda request: None)
            with pytest.raises(ValueError, match="/x cannot be observed"):
                server.notify("/x")
            await asyncio.sleep(0)
            with pytest.raises(RuntimeError, match="/y comes too late"):
                server.resource("/y")

    run(main())


def test_wrong_responses_are_told() -> None:
    for code in ("GET", "9.99", "0.00", "fine"):
        with pytest.raises(ValueError, match="must be the code of a response"):
            Response(code=code)
    assert Response("x", "4.04", content_format=60, options=[(8, "a"), (8, b"b")]).options == [
        (8, b"a"),
        (8, b"b"),
        (12, b"<"),
    ]


def test_libcoaps_client_understands_the_server() -> None:
    program = installed("coap-client-notls")

    async def main() -> None:
        async with Server("127.0.0.1:0") as server:
            text = "".join(f"{number:<63}\n" for number in range(50))
            count = 0

            @server.resource("/text", observable=True)
            def read(request: Request) -> str:
                return f"{count}\n{text}"

            @server.resource("/echo", "PUT")
            async def echo(request: Request) -> bytes:
                await asyncio.sleep(0.5)
                return request.payload

            async def ask(*arguments: str) -> str:
                command = [program, "-B", "10", *arguments]
                done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True)
                return str(done.stdout + done.stderr)

            assert (await ask("-m", "get", server.uri + "/text")).strip() == f"0\n{text}".strip()
            assert (await ask("-m", "put", "-e", "hello", server.uri + "/echo")).strip() == "hello"
            assert "4.04" in await ask("-m", "get", server.uri + "/nothing")
            observing = asyncio.ensure_future(ask("-s", "2", server.uri + "/text"))
            for _ in range(3):
                await asyncio.sleep(0.5)
                count += 1
                server.notify("/text")
            told = await observing
            assert [f"{number}\n" in told.split(text) for number in range(4)] == [True] * 4

    run(main())

