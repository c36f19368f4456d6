"""The client: requests, bodies, observations, losses, errors."""

import asyncio
import contextlib
import os
import socket
import subprocess
from collections.abc import AsyncIterator
from typing import Any

import pytest
from endpoints import Relay, installed, run

import coapace
from coapace import Client, Request, Response, Server

TEXT = "".join(f"{offset:<63}\n" for offset in range(0, 102_400, 64))


@contextlib.asynccontextmanager
async def serving() -> AsyncIterator[Server]:
    """A server with a few resources."""
    async with Server("127.0.0.1:0") as server:

        @server.resource("/hello")
        def hello(request: Request) -> str:
            return "hello"

        @server.resource("/echo", ["POST", "PUT", "FETCH", "PATCH", "iPATCH", "DELETE"])
        async def echo(request: Request) -> Response:
            return Response(request.payload, "2.05", content_format=request.content_format)

        @server.resource("/large")
        def large(request: Request) -> str:
            return TEXT

        @server.resource("/never")
        async def never(request: Request) -> None:
            await asyncio.Event().wait()

        yield server


def test_a_response_says_what_the_server_said_and_how_it_came() -> None:
    async def main() -> None:
        async with serving() as server, Client() as client:
            response = await client.get(server.uri + "/hello")
            assert (response.code, response.text, response.payload) == ("2.05", "hello", b"hello")
            assert response.is_success and response.content_format == 0 and response.max_age == 60
            assert response.transmissions == 1 and response.elapsed > 0
            assert (12, b"") in response.options, "Content-Format 0 is an empty value"
            assert repr(response) == "<Response 2.05 Content, 5 bytes>"
            missing = await client.get(server.uri + "/nothing")
            assert (missing.code, missing.is_success) == ("4.04", False)

    run(main())


@pytest.mark.parametrize("method", ["post", "put", "fetch", "patch", "ipatch"])
def test_every_method_sends_its_payload(method: str) -> None:
    async def main() -> None:
        async with serving() as server, Client() as client:
            response = await getattr(client, method)(server.uri + "/echo", "{}", content_format=50)
            assert (response.text, response.content_format) == ("{}", 50)
            assert (await client.delete(server.uri + "/echo")).payload == b""
            assert (await client.request(method.upper(), server.uri + "/echo", b"\xff")).payload == b"\xff"

    run(main())


def test_bodies_of_a_hundred_kilobytes_go_both_ways() -> None:
    async def main() -> None:
        terms: list[dict[str, object]] = [{}, {"block_size": 256}, {"bulk": None}, {"bulk": "newreno", "q_block": False}]
        for kept in terms:
            async with serving() as server, Client(**kept) as each:  # type: ignore[arg-type]
                assert (await each.get(server.uri + "/large")).text == TEXT
                body = os.urandom(100_000)
                assert (await each.post(server.uri + "/echo", body)).payload == body

    run(main())


def test_a_hundred_requests_at_once_are_all_answered() -> None:
    async def main() -> None:
        async with serving() as server, Client() as one, Client(nstart=100) as hundred:
            for client in (one, hundred):
                calls = (client.post(server.uri + "/echo", str(number)) for number in range(100))
                answers = await asyncio.gather(*calls)
                assert [answer.text for answer in answers] == [str(number) for number in range(100)]
                assert client.remotes[0].exchanges == 100

    run(main())


def test_an_observation_has_every_change_that_is_waited_for() -> None:
    async def main() -> None:
        async with Server("127.0.0.1:0") as server, Client("cocoa") as client:
            count = 0

            @server.resource("/count", observable=True)
            def read(request: Request) -> str:
                return str(count)

            seen = []
            async with client.observe(server.uri + "/count") as representations:
                assert isinstance(representations, coapace.Observation)
                async for response in representations:
                    seen.append(int(response.text))
                    if count == 20:
                        break
                    count += 1
                    server.notify("/count")
            assert seen == list(range(21))
            with pytest.raises(StopAsyncIteration):
                await representations.__anext__()

    run(main())


def test_an_observation_ends_with_the_server_or_with_the_first_of_what_does_not_change() -> None:
    async def main() -> None:
        async with Client() as client:
            async with serving() as server:
                assert [one.text async for one in client.observe(server.uri + "/hello")] == ["hello"]
                with pytest.raises(coapace.NotObserved) as refused:
                    async with client.observe(server.uri + "/nothing"):
                        pass
                assert refused.value.response.code == "4.04"
                assert str(refused.value) == f"{server.uri}/nothing: the server answered 4.04 Not Found"
            async with Server("127.0.0.1:0") as server:
                server.resource("/x", observable=True)(lambda request: "x")
                representations = client.observe(server.uri + "/x", once=True)
                assert (await representations.__anext__()).text == "x"
            assert [one.code async for one in representations] == ["5.03"], "the server has said goodbye"

    run(main())


def test_a_client_with_a_proxy_asks_it_for_every_resource() -> None:
    async def main() -> None:
        async with serving() as server:
            async with Client(proxy=server.uri) as client:
                for uri in ["coap://192.0.2.1/hello", "http://example.org/hello"]:
                    assert (await client.get(uri)).code == "5.05", "a server of this package is no proxy"
            async with Client() as client:
                with pytest.raises(ValueError, match="Uri-Path must not be there beside Proxy-Uri; give proxy=URI"):
                    await client.get(server.uri + "/hello", options=[(35, "coap://192.0.2.1/hello")])
                with pytest.raises(ValueError, match="Uri-Path must not be . or .."):
                    await client.get(server.uri, options=[(11, "..")])
                with pytest.raises(ValueError, match="must not be %2E or %2E%2E"):
                    await client.get(server.uri + "/%2e%2e/hello")
        for proxy in ["localhost", "coap://localhost/path"]:
            with pytest.raises(ValueError, match=f"proxy is {proxy!r}".replace("'", '"')):
                Client(proxy=proxy)

    run(main())


async def serving_again(address: str) -> Server:
    """Bind to an address whose last socket is closed, or is just being closed."""
    for _ in range(200):
        try:
            return Server(address)
        except OSError:
            await asyncio.sleep(0.05)
    return Server(address)


def test_an_observation_goes_on_when_its_server_is_back() -> None:
    async def main() -> None:
        async with Client() as client:
            async with Server("127.0.0.1:0") as server:
                server.resource("/x", observable=True)(lambda request: "before")
                representations = client.observe(server.uri + "/x")
                assert (await representations.__anext__()).text == "before"
                address = server.address
            async with await serving_again(address) as server:
                server.resource("/x", observable=True)(lambda request: "after")
                assert (await asyncio.wait_for(representations.__anext__(), 60)).text == "after"

    run(main())


@pytest.mark.parametrize("cc", ["default", "cocoa", "fasor", "ebb"])
def test_a_lost_request_is_sent_again_when_the_mechanism_says_so(cc: str) -> None:
    async def main() -> None:
        async with serving() as server:
            relay = Relay(server.address, lambda to_server, nth: to_server and nth % 2 == 0)
            async with relay.opened() as address, Client(cc, ack_timeout=0.1) as client:
                for _ in range(3):
                    response = await client.get(f"coap://{address}/hello")
                    assert (response.text, response.transmissions) == ("hello", 2)
                (remote,) = client.remotes
                assert (remote.address, remote.exchanges, remote.failed) == (address, 3, 0)
                assert (remote.retransmissions, relay.lost) == (3, 3)

    run(main())


def test_clients_and_servers_show_what_they_are() -> None:
    async def main() -> None:
        async with Server("127.0.0.1:0") as server, Client("cocoa") as client:
            assert (repr(client), repr(server)) == ("Client('cocoa')", f"<Server {server.uri}>")

    run(main())


def test_an_observation_ends_twice_and_without_its_client() -> None:
    async def main() -> None:
        async with Server("127.0.0.1:0") as server, Client() as client:
            server.resource("/count", observable=True)(lambda request: "0")
            async with client.observe(server.uri + "/count") as observation:
                assert (await anext(observation)).text == "0"
                await observation.end()
                await observation.end()
            async with client.observe(server.uri + "/count") as observation:
                assert (await anext(observation)).text == "0"
                await client.close()

    run(main())


def test_what_a_mechanism_learns_is_seen() -> None:
    async def main() -> None:
        async with serving() as server, Client("cocoa") as client, Client("default") as deaf:
            assert client.remotes == []
            for _ in range(8):
                await client.get(server.uri + "/hello")
                await deaf.get(server.uri + "/hello")
            (remote,), (unmeasured,) = client.remotes, deaf.remotes
            assert remote.rto < 2.0 and remote.srtt is not None and remote.rttvar is not None
            assert (unmeasured.rto, unmeasured.srtt, unmeasured.rttvar) == (2.0, None, None)

    run(main())


def test_bodies_and_observations_come_through_losses() -> None:
    async def main() -> None:
        async with Server("127.0.0.1:0", cc="default:ack_timeout=100ms") as server:
            versions = [TEXT[:5_000], TEXT[5_000:9_000]]

            @server.resource("/text", observable=True)
            def read(request: Request) -> str:
                return versions[0]

            relay = Relay(server.address, lambda to_server, nth: nth % 3 == 2)
            async with relay.opened() as address, Client("ebb", ack_timeout=0.1, max_retransmit=8) as client:
                assert (await client.get(f"coap://{address}/text")).text == versions[0]
                async with client.observe(f"coap://{address}/text") as representations:
                    assert (await representations.__anext__()).text == versions[0]
                    versions.pop(0)
                    server.notify("/text")
                    assert (await representations.__anext__()).text == versions[0]
            assert relay.lost > 5

    run(main())


def test_nobody_there_is_told_in_one_sentence() -> None:
    async def main() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as unused:
            unused.bind(("127.0.0.1", 0))
            port = unused.getsockname()[1]
        uri = f"coap://127.0.0.1:{port}/x"
        async with Client(ack_timeout=0.02, max_retransmit=1) as patient:
            with pytest.raises(coapace.NetworkError, match="nobody listens there"):
                await patient.get(uri)
            assert patient.remotes[0].retransmissions == 1
        async with Client(fail_fast=True) as client:
            with pytest.raises(coapace.NetworkError) as refused:
                await client.get(uri)
            assert client.remotes[0].retransmissions == 0
            assert str(refused.value) == f"{uri}: nobody listens there; check the port, and whether the server runs"
            tcp = uri.replace("coap", "coap+tcp")
            with pytest.raises(coapace.NetworkError, match="nobody listens there"):
                await client.get(tcp)

    run(main())


def test_a_group_is_asked_once_and_whoever_answers_is_listed() -> None:
    async def main() -> None:
        with contextlib.ExitStack() as stack:
            group, *members = [
                stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(3)
            ]
            for each in (group, *members):
                each.bind(("127.0.0.1", 0))
            uri = "coap://127.0.0.1:{}/x".format(group.getsockname()[1])
            async with Client() as client:
                answers = {}
                async with client.group("GET", uri, leisure=1.0) as responses:
                    asked, address = await asyncio.get_running_loop().run_in_executor(None, _receive, group)
                    assert isinstance(responses, coapace.Group)
                    assert asked[0] & 0x30 == 0x10, "it is not confirmable"
                    token = asked[4 : 4 + (asked[0] & 15)]
                    for number, member in enumerate(members):
                        header = bytes([0x50 | len(token), 0x45, 0, number])
                        member.sendto(header + token + b"\xffhere", address)
                    async for member_address, response in responses:
                        answers[member_address] = response.text
                assert answers == {"127.0.0.1:{}".format(member.getsockname()[1]): "here" for member in members}
                async for _ in client.group("PUT", uri, "1", no_response=26):
                    raise AssertionError("no answer was asked for")

    run(main())


def test_a_group_is_asked_in_no_other_way() -> None:
    async def main() -> None:
        async with Client() as client:
            with pytest.raises(ValueError, match=r"ask its members with Client\.group"):
                await client.get("coap://[ff02::fd]/x")
            with pytest.raises(ValueError, match=r"ask its members with Client\.group"):
                await client.ping("coap://224.0.1.187")
            with pytest.raises(ValueError, match="fe80::1 is a link-local address; name its interface"):
                await client.get("coap://[fe80::1]/x")
            with pytest.raises(ValueError, match="fe80::1 is a link-local address; name its interface"):
                Server("[fe80::1]:0")

    run(main())


def test_silence_ends_with_the_last_retransmission_or_with_the_timeout() -> None:
    async def main() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
            silent.bind(("127.0.0.1", 0))
            uri = "coap://127.0.0.1:{}/x".format(silent.getsockname()[1])
            async with Client("default:ack_timeout=50ms", max_retransmit=1) as client:
                with pytest.raises(coapace.Timeout, match="given up after 2 transmissions"):
                    await client.get(uri)
                with pytest.raises(TimeoutError, match="no response in time"):
                    await client.get(uri, timeout=0.02)
                with pytest.raises(coapace.Timeout):
                    await client.get(uri, confirmable=False, timeout=0.02)
                with pytest.raises(coapace.Timeout):
                    await client.ping(uri, timeout=0.02)

    run(main())


def test_a_reset_is_an_exception_and_the_answer_to_a_ping() -> None:
    async def main() -> None:
        async with Client() as client:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
                peer.bind(("127.0.0.1", 0))
                peer.setblocking(False)
                uri = "coap://127.0.0.1:{}/x".format(peer.getsockname()[1])
                call = asyncio.ensure_future(client.get(uri))
                data, address = await asyncio.get_running_loop().run_in_executor(None, _receive, peer)
                peer.sendto(b"\x70\x00" + data[2:4], address)
                with pytest.raises(coapace.Reset, match="rejected by the peer"):
                    await call
            async with serving() as server:
                assert await client.ping(server.uri) > 0

    run(main())


def _receive(peer: socket.socket) -> tuple[bytes, Any]:
    peer.settimeout(30)
    data, address = peer.recvfrom(2048)
    return data, address


def test_retransmissions_and_acknowledgements_leave_while_the_event_loop_is_blocked() -> None:
    async def main() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
            peer.bind(("127.0.0.1", 0))
            peer.settimeout(30)
            async with Client("default:ack_timeout=20ms", max_retransmit=2) as client, serving() as server:
                call = asyncio.ensure_future(client.get("coap://127.0.0.1:{}/x".format(peer.getsockname()[1])))
                host, port = server.address.split(":")
                await client.get(server.uri + "/hello")
                # From here on nothing else runs in this loop.
                assert len({peer.recv(2048) for _ in range(3)}) == 1
                peer.sendto(b"\x40\x01\x12\x34\xb5never", (host, int(port)))
                assert peer.recv(2048) == b"\x60\x00\x12\x34", "an empty acknowledgement"
                call.cancel()

    run(main())


def test_a_cancelled_request_is_not_sent_again() -> None:
    async def main() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
            silent.bind(("127.0.0.1", 0))
            uri = "coap://127.0.0.1:{}/x".format(silent.getsockname()[1])
            # NSTART is 1: the second request leaves when the first is no exchange any more.
            async with Client("default:ack_timeout=20ms", max_retransmit=2) as client:
                get = asyncio.ensure_future(client.get(uri))
                await asyncio.get_running_loop().run_in_executor(None, _receive, silent)
                get.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await get
                with pytest.raises(coapace.Timeout, match="given up after 3 transmissions"):
                    await client.put(uri)
            silent.setblocking(False)
            methods = []
            with contextlib.suppress(BlockingIOError):
                while True:
                    methods.append(silent.recv(2048)[1])
            # 0.01 is GET and 0.03 is PUT. No GET follows the first PUT.
            assert methods[methods.index(3) :] == [3, 3, 3]

    run(main())


def test_closing_ends_what_is_under_way() -> None:
    async def main() -> None:
        async with serving() as server:
            client = Client()
            call = asyncio.ensure_future(client.get(server.uri + "/never"))
            assert (await client.get(server.uri + "/hello", confirmable=False)).text == "hello"
            await client.close()
            with pytest.raises(coapace.NetworkError, match="the client is closed"):
                await call
            with pytest.raises(coapace.NetworkError, match="the client is closed"):
                await client.get(server.uri + "/hello")
            await client.close()

    run(main())


@pytest.mark.parametrize(
    ("uri", "sentence"),
    [
        ("127.0.0.1/x", "expected scheme://host"),
        ("http://127.0.0.1/x", "expected coap, coaps, coap[+]tcp"),
        ("coap://127.0.0.1:99999/x", "the port is not a number"),
        ("coap://[::1/x", "expected an IPv6 address"),
        ("coaps://127.0.0.1/x", "give psk="),
    ],
)
def test_a_wrong_uri_is_a_value_error(uri: str, sentence: str) -> None:
    async def main() -> None:
        async with Client() as client:
            with pytest.raises(ValueError, match=sentence):
                await client.get(uri)

    run(main())


def test_a_name_that_nobody_knows_is_a_network_error() -> None:
    async def main() -> None:
        async with Client() as client:
            with pytest.raises(coapace.NetworkError, match="nowhere.invalid not found"):
                await client.get("coap://nowhere.invalid/x")

    run(main())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"cc": "coca"}, "did you mean cocoa"),
        ({"cc": "cocoa:max-rto=9s"}, "did you mean max_rto"),
        ({"ack_timeout": -1.0}, "ack_timeout is -1"),
        ({"nstart": 0}, "nstart is 0"),
        ({"bulk": "ebb"}, "bulk mechanisms: tide, newreno, rfc9177"),
    ],
)
def test_wrong_arguments_are_told(arguments: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        Client(**arguments)  # type: ignore[arg-type]


def test_wrong_requests_are_told() -> None:
    async def main() -> None:
        async with Client() as client:
            with pytest.raises(ValueError, match='method is "GRAB"'):
                await client.request("GRAB", "coap://127.0.0.1/x")
            with pytest.raises(ValueError, match="timeout is -1"):
                await client.get("coap://127.0.0.1/x", timeout=-1)
            with pytest.raises(TypeError):
                await client.get("coap://127.0.0.1/x", patience=3)  # type: ignore[call-arg]

    run(main())


def test_a_mechanism_written_in_python_is_for_simulations() -> None:
    class Calm(coapace.Controller):
        """Waits."""

        def on_start(self, cue: coapace.Cue) -> tuple[None, float]:
            return None, 3.0

        def on_retransmit(self, exchange: None, cue: coapace.Cue) -> float:
            return 3.0

        def on_end(self, exchange: None, outcome: str, sample: coapace.Sample | None, cue: coapace.Cue) -> None:
            pass

    coapace.register("calm-client", Calm)
    with pytest.raises(ValueError, match="runs in simulations only"):
        Client("calm-client")


def test_a_client_belongs_to_one_loop() -> None:
    client = Client()

    async def ask() -> None:
        with contextlib.suppress(coapace.NetworkError):
            await client.get("coap://127.0.0.1:1/x", timeout=1)

    run(ask())
    with pytest.raises(RuntimeError, match="belong to one event loop"):
        run(ask())


@pytest.mark.parametrize(
    ("address", "psk"),
    [("coap+tcp://127.0.0.1:0", None), ("coap+ws://127.0.0.1:0", None), ("coaps://127.0.0.1:0", ("lamp", b"secret"))],
)
def test_other_transports_carry_the_same(address: str, psk: tuple[str, bytes] | None) -> None:
    async def main() -> None:
        keys = None if psk is None else dict([psk])
        async with Server(address, psk=keys) as server, Client(psk=psk) as client:
            assert server.uri.startswith(address[:-1])
            count = 0

            @server.resource("/body", ["GET", "PUT"], observable=True)
            def body(request: Request) -> bytes | str:
                assert request.identity == (None if psk is None else "lamp")
                return request.payload + b"!" if request.method == "PUT" else str(count)

            long = os.urandom(50_000)
            assert (await client.put(server.uri + "/body", long)).payload == long + b"!"
            async with client.observe(server.uri + "/body") as representations:
                assert (await representations.__anext__()).text == "0"
                count += 1
                server.notify("/body")
                assert (await representations.__anext__()).text == "1"

    run(main())


def test_a_wrong_key_is_told() -> None:
    async def main() -> None:
        async with Server("127.0.0.1:0", psk={"lamp": "secret"}) as server, Client(psk=("lamp", "wrong")) as client:
            with pytest.raises(coapace.NetworkError, match="check"):
                await client.get(server.uri + "/x")

    run(main())


def test_libcoaps_server_is_understood() -> None:
    program = installed("coap-server-notls")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    with subprocess.Popen(
        [program, "-A", "127.0.0.1", "-p", str(port), "-d", "10"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:

            async def main() -> None:
                uri = f"coap://127.0.0.1:{port}"
                async with Client("fasor", ack_timeout=0.1) as client:
                    while True:
                        with contextlib.suppress(coapace.NetworkError):
                            await client.ping(uri)
                            break
                        await asyncio.sleep(0.1)
                    relay = Relay(f"127.0.0.1:{port}", lambda to_server, nth: to_server and nth % 2 == 0)
                    assert "libcoap" in (await client.get(uri + "/")).text
                    assert (await client.put(uri + "/example_data", TEXT[:3_000])).is_success
                    async with relay.opened() as address:
                        lossy = await client.get(f"coap://{address}/example_data")
                    # Two blocks are under way at once, so a copy may be lost, too.
                        assert lossy.text == TEXT[:3_000] and lossy.transmissions >= 2
                    seen = []
                    async with client.observe(uri + "/time") as representations:
                        async for response in representations:
                            seen.append(response.text)
                            if len(seen) == 3:
                                break
                    assert len(seen) == 3

            run(main())
        finally:
            process.kill()


def test_an_upload_of_which_the_server_took_one_block_for_all_is_an_error() -> None:
    async def main() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
            peer.bind(("127.0.0.1", 0))
            uri = "coap://127.0.0.1:{}/x".format(peer.getsockname()[1])
            async with Client() as client:
                call = asyncio.ensure_future(client.put(uri, bytes(3_000)))
                data, address = await asyncio.get_running_loop().run_in_executor(None, _receive, peer)
                # 2.04 to the first block, without Block1.
                peer.sendto(bytes([0x60 | data[0] & 15, 0x44]) + data[2 : 4 + (data[0] & 15)], address)
                with pytest.raises(coapace.NetworkError, match="2.04 Changed to the first 1024 of 3000 bytes"):
                    await call

    run(main())
