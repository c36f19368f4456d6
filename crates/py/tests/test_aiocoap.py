"""The mechanisms in aiocoap, on a loop whose time jumps to the next timer, with a peer in memory."""

from __future__ import annotations

import asyncio
import importlib.util
import random
import selectors
import sys
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

import coapace

aiocoap = pytest.importorskip("aiocoap")

import coapace.aiocoap  # noqa: E402
from aiocoap import error  # noqa: E402
from aiocoap.message import Direction, Message  # noqa: E402
from aiocoap.numbers.constants import TransportTuning  # noqa: E402
from aiocoap.numbers.types import ACK, CON, RST  # noqa: E402


class Jumping(selectors.DefaultSelector):
    """Waits for nothing: its time is that of the next timer."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        assert timeout is not None, "the loop has neither a timer nor anything to do"
        self.now += max(0.0, timeout)
        return super().select(0)


class Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.clock = Jumping()
        super().__init__(self.clock)

    def time(self) -> float:
        return self.clock.now


class Remote:
    """An address in memory."""

    scheme, uri_base, uri_base_local = "coap", "coap://peer", "coap://here"
    is_multicast = is_multicast_locally = False
    maximum_block_size_exp, maximum_payload_size = 6, 1124
    authenticated_claims = ()

    def __init__(self, name: str) -> None:
        self.hostinfo = self.blockwise_key = name

    def as_response_address(self) -> Remote:
        return self


class Peer:
    """A transport of aiocoap and the other side of it: keeps what departs, and answers as the test says."""

    def __init__(self, loop: Loop, manager: Any) -> None:
        self.loop, self.manager = loop, manager
        self.remotes = {name: Remote(name) for name in ("a", "b", "c")}
        self.departed: list[tuple[float, Message]] = []
        #: Called with each transmission and its number.
        self.react: Callable[[Message, int], None] = lambda message, number: None

    def send(self, message: Message) -> None:
        copy = Message.decode(message.encode())
        copy.remote, copy.direction = message.remote, Direction.INCOMING
        self.departed.append((self.loop.time(), copy))
        self.react(copy, sum(one.mid == copy.mid for _, one in self.departed) - 1)

    def answer(self, request: Message, after: float, **fields: Any) -> None:
        """Let a message arrive from the peer; by default a piggybacked response."""
        chosen = {"code": aiocoap.CONTENT, "_mtype": ACK, "_mid": request.mid, "_token": request.token, **fields}
        message = Message(**chosen)
        message.remote, message.direction = request.remote, Direction.INCOMING
        self.loop.call_later(after, self.manager.dispatch_message, message)

    async def recognize_remote(self, remote: Any) -> bool:
        return isinstance(remote, Remote)

    async def determine_remote(self, message: Message) -> Any:
        return self.remotes.get(message.opt.uri_host)

    async def shutdown(self) -> None:
        pass

    def times(self, mid: int | None = None) -> list[float]:
        return [at for at, message in self.departed if mid is None or message.mid == mid]


class Bench:
    """A context over a peer in memory."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.context: Any = None
        self.peer: Peer = None  # type: ignore[assignment]

    async def open(self) -> None:
        self.context = aiocoap.Context(loop=self.loop)

        async def make(manager: Any) -> Peer:
            self.peer = Peer(self.loop, manager)
            return self.peer

        await self.context._append_tokenmanaged_messagemanaged_transport(make)

    async def get(self, host: str = "a", **fields: Any) -> Message:
        request = Message(code=aiocoap.GET, uri=f"coap://{host}/", **fields)
        return await self.context.request(request, handle_blockwise=False).response

    def run(self, test: Callable[[], Coroutine[Any, Any, None]]) -> None:
        async def whole() -> None:
            await self.open()
            await test()
            await self.context.shutdown()

        self.loop.run_until_complete(whole())


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """Give a bench where every draw is a half."""
    monkeypatch.setattr(random, "random", lambda: 0.5)
    loop = Loop()
    asyncio.set_event_loop(loop)
    yield Bench(loop)
    asyncio.set_event_loop(None)
    loop.close()


@pytest.mark.parametrize("name", ["default", "cocoa", "fasor", "ebb", "peak-hopper", "linux-rto"])
def test_the_timeouts_are_those_that_the_mechanism_arms(bench: Bench, name: str) -> None:
    lost = [0, 0, 1, 0, 2, 0, 0, 4, 0]
    seconds = [0.3, 0.2, 0.4, 0.9, 0.2, 0.2, 1.7, 0.3, 0.3]

    async def test() -> None:
        control = coapace.aiocoap.install(bench.context, name)
        alone = coapace.Mechanism(name)
        for loses, after in zip(lost, seconds):
            bench.peer.react = lambda message, number: bench.peer.answer(message, after) if number == loses else None
            now, before = bench.loop.time(), len(bench.peer.departed)
            response = await bench.get()
            exchange, expected, end = alone.start(now, 0.5), [now], float("inf")
            while True:
                if len(expected) == loses + 1:
                    end = now + after
                if now + exchange.timeout > end:
                    break
                now += exchange.timeout
                alone.retransmit(exchange, now, 0.5)
                expected.append(now)
            # A mark is believed where no later copy can have had that answer.
            marked = alone.marking != "none" and len(expected) == loses + 1
            alone.acknowledge(exchange, end, loses if marked else None)
            assert bench.peer.times()[before:] == pytest.approx(expected)
            gauges = control.remotes[response.remote]
            assert gauges.rto == pytest.approx(alone.rto, abs=2e-6)
            assert (gauges.srtt is None) == (alone.srtt is None)
            assert (gauges.mechanism, gauges.outstanding, gauges.waiting) == (name, 0, 0)

    bench.run(test)


def test_a_retransmission_that_is_marked_is_told_from_the_first(bench: Bench) -> None:
    async def test() -> None:
        control = coapace.aiocoap.install(bench.context, "ebb")
        # The answer to the first transmission needs longer than the timeout, and comes before that to the second.
        bench.peer.react = lambda message, number: bench.peer.answer(message, 2.6 if number == 0 else 9.0)
        response = await bench.get()
        (_, first), (at, second) = bench.peer.departed
        assert second.token == first.token + b"\x01"
        assert response.token == first.token
        # The timeout of the first had passed, so this may be its answer, repeated for the second copy: no sample yet.
        assert control.remotes[response.remote].srtt is None
        await asyncio.sleep(20)
        # The late answer to the second named that, so this remote answers each copy with its mark, which is believed from now on.
        bench.peer.react = lambda message, number: bench.peer.answer(message, 0.5)
        await bench.get()
        bench.peer.react = lambda message, number: bench.peer.answer(message, 3.3 if number == 0 else 9.0)
        await bench.get()
        assert len(bench.peer.departed) == 5
        assert control.remotes[response.remote].srtt == pytest.approx(0.5 + (3.3 - 0.5) / 8)

    bench.run(test)


def test_a_remote_that_repeats_its_first_answer_is_not_believed_about_later_copies(bench: Bench) -> None:
    async def test() -> None:
        control = coapace.aiocoap.install(bench.context, "ebb")
        remote = bench.peer.remotes["a"]
        bench.peer.react = lambda message, number: bench.peer.answer(bench.peer.departed[0][1], 0.5 if number else 2.6)
        await bench.get()
        assert len(bench.peer.departed) == 2
        # Both answers name the first copy: which of the two it was nobody knows.
        assert control.remotes[remote].srtt is None
        await asyncio.sleep(20)

        def twice(message: Message, number: int) -> None:
            bench.peer.answer(message, 0.5)
            bench.peer.answer(message, 0.6)

        bench.peer.react = twice
        await bench.get()
        await asyncio.sleep(1)
        assert control.remotes[remote].srtt == 0.5

    bench.run(test)


def test_a_separate_response_to_a_marked_request_arrives(bench: Bench) -> None:
    async def test() -> None:
        coapace.aiocoap.install(bench.context, "ebb")

        def react(message: Message, number: int) -> None:
            if message.mtype is CON and number == 1:
                bench.peer.answer(message, 0.1, code=aiocoap.EMPTY, _token=b"")
                bench.peer.answer(message, 1.0, _mtype=CON, _mid=7, payload=b"late")

        bench.peer.react = react
        response = await bench.get()
        assert response.payload == b"late"
        assert [(message.mtype, message.mid) for _, message in bench.peer.departed[2:]] == [(ACK, 7)]

    bench.run(test)


def test_an_observation_is_registered_with_one_token(bench: Bench) -> None:
    async def test() -> None:
        coapace.aiocoap.install(bench.context, "ebb")
        bench.peer.react = lambda message, number: bench.peer.answer(message, 0.1) if number else None
        await bench.get(observe=0)
        assert bench.peer.departed[0][1].token == bench.peer.departed[1][1].token

    bench.run(test)


def test_a_remote_has_a_mechanism_of_its_own_or_none(bench: Bench) -> None:
    async def test() -> None:
        chosen = {"a": "cocoa", "b": "fasor", "c": None}
        control = coapace.aiocoap.install(bench.context, lambda remote: chosen[remote.hostinfo])
        bench.peer.react = lambda message, number: bench.peer.answer(message, 0.25)
        await asyncio.gather(*(bench.get(host) for host in "abc"))
        known = {remote.hostinfo: gauges for remote, gauges in control.remotes.items()}
        assert {host: gauges.mechanism for host, gauges in known.items()} == {"a": "cocoa", "b": "fasor"}
        assert known["a"].rto == pytest.approx(1.375)
        assert (known["a"].srtt, known["b"].srtt) == (0.25, 0.25)

    bench.run(test)


def test_one_exchange_at_a_time_is_under_way_and_the_others_wait_in_order(bench: Bench) -> None:
    async def test() -> None:
        control = coapace.aiocoap.install(bench.context, "cocoa")
        bench.peer.react = lambda message, number: bench.peer.answer(message, 0.5)
        asked = [asyncio.ensure_future(bench.get()) for _ in range(3)]
        await asyncio.sleep(0.1)
        (gauges,) = control.remotes.values()
        assert (gauges.outstanding, gauges.waiting) == (1, 2)
        await asyncio.gather(*asked)
        assert bench.peer.times() == pytest.approx([0.0, 0.5, 1.0])

    bench.run(test)


def test_nstart_and_pacing_are_those_of_the_mechanism(bench: Bench) -> None:
    async def test() -> None:
        coapace.aiocoap.install(bench.context, "rtt-coap")
        # Every fourth answer takes longer than the pauses, so that two exchanges are under way at once.
        first, seconds = bench.peer.manager.message_id, [0.1, 0.1, 0.1, 0.2]
        bench.peer.react = lambda message, number: bench.peer.answer(message, seconds[(message.mid - first) % 4])
        with pytest.warns(UserWarning, match="rtt-coap marks by option, which aiocoap cannot carry"):
            await asyncio.gather(*(bench.get() for _ in range(60)))

        alone, now, expected, most = coapace.Mechanism("rtt-coap"), 0.0, [], 0
        open_exchanges: list[tuple[float, coapace.Exchange]] = []
        for number in range(60):
            while open_exchanges:
                departs, (end, exchange) = now + alone.pause(now), min(open_exchanges, key=lambda one: one[0])
                if departs < end and len(open_exchanges) < (alone.nstart or 1):
                    break
                open_exchanges.remove((end, exchange))
                now = end
                alone.acknowledge(exchange, now)
            now += alone.pause(now)
            open_exchanges.append((now + seconds[number % 4], alone.start(now, 0.5)))
            expected.append(now)
            most = max(most, len(open_exchanges))
        assert bench.peer.times() == pytest.approx(expected, abs=1e-4)
        assert most == 2

    bench.run(test)


def test_a_fast_mechanism_does_not_give_up_sooner_than_the_tuning_of_the_message_says(bench: Bench) -> None:
    async def test() -> None:
        coapace.aiocoap.install(bench.context, "fasor")
        bench.peer.react = lambda message, number: bench.peer.answer(message, 0.01)
        for _ in range(20):
            await bench.get()
        bench.peer.departed.clear()
        bench.peer.react = lambda message, number: None
        begun = bench.loop.time()
        with pytest.raises(error.ConRetransmitsExceeded):
            await bench.get()
        assert bench.loop.time() - begun == pytest.approx(93.0)
        departed = [at - begun for at in bench.peer.times()]
        assert len(departed) == 6 and departed[4] < 45.0 and departed[5] == pytest.approx(45.0)
        # A remote that let the last timeout pass has RFC 7252's timeouts until it answers.
        bench.peer.departed.clear()
        bench.peer.react = lambda message, number: bench.peer.answer(message, 0.01) if number == 1 else None
        await bench.get()
        assert bench.peer.times()[1] - bench.peer.times()[0] >= 2.5
        await bench.get()

    bench.run(test)


def test_the_tuning_of_a_message_says_how_often_and_how_long(bench: Bench) -> None:
    class Hasty(TransportTuning):  # type: ignore[misc] # aiocoap has no types
        ACK_TIMEOUT, MAX_RETRANSMIT = 0.5, 1

    async def test() -> None:
        coapace.aiocoap.install(bench.context, "cocoa")
        with pytest.raises(error.ConRetransmitsExceeded):
            await bench.get(transport_tuning=Hasty())
        assert bench.peer.times() == pytest.approx([0.0, 2.5])
        assert bench.loop.time() == pytest.approx(2.5 + 5.0)

    bench.run(test)


def test_a_reset_and_an_error_of_the_network_teach_nothing_and_let_the_next_go(bench: Bench) -> None:
    async def test() -> None:
        control = coapace.aiocoap.install(bench.context, "cocoa")
        bench.peer.react = lambda message, number: bench.peer.answer(
            message, 0.1, _mtype=RST, code=aiocoap.EMPTY, _token=b""
        )
        with pytest.raises(error.MessageError):
            await bench.get()
        bench.peer.react = lambda message, number: None
        asked = [asyncio.ensure_future(bench.get()) for _ in range(2)]
        await asyncio.sleep(0.1)
        bench.peer.manager.dispatch_error(OSError("unreachable"), bench.peer.remotes["b"])
        remote = bench.peer.remotes["a"]
        bench.peer.manager.dispatch_error(OSError("unreachable"), remote)
        assert all(isinstance(one, error.NetworkError) for one in await asyncio.gather(*asked, return_exceptions=True))
        gauges = control.remotes[remote]
        assert (gauges.rto, gauges.outstanding, gauges.waiting) == (2.0, 0, 0)
        bench.peer.react = lambda message, number: bench.peer.answer(message, 0.6)
        await bench.get()
        assert control.remotes[remote].rto == pytest.approx(1.9)

    bench.run(test)


def test_remotes_beyond_the_limit_are_forgotten_the_idlest_first(bench: Bench) -> None:
    async def test() -> None:
        control = coapace.aiocoap.install(bench.context, "cocoa", limit=2)
        bench.peer.react = lambda message, number: bench.peer.answer(message, 0.1)
        for host in "abac":
            await bench.get(host)
        assert [remote.hostinfo for remote in control.remotes] == ["a", "c"]

    bench.run(test)


def test_an_uninstalled_mechanism_leaves_the_timers_to_aiocoap(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        control = coapace.aiocoap.install(bench.context, "cocoa")
        with pytest.raises(ValueError, match="uninstall it first"):
            coapace.aiocoap.install(bench.context, "fasor")
        bench.peer.react = lambda message, number: bench.peer.answer(message, 0.1)
        await bench.get()
        control.uninstall()
        assert control.remotes == {}
        monkeypatch.setattr(random, "uniform", lambda low, high: 2.25)
        bench.peer.react = lambda message, number: bench.peer.answer(message, 0.1) if number == 2 else None
        begun = bench.loop.time()
        await bench.get()
        assert [at - begun for at in bench.peer.times()[1:]] == pytest.approx([0.0, 2.25, 6.75])
        coapace.aiocoap.install(bench.context, "fasor").uninstall()

    bench.run(test)


def test_what_is_under_way_ends_with_its_mechanism_when_that_is_uninstalled(bench: Bench) -> None:
    async def test() -> None:
        control = coapace.aiocoap.install(bench.context, "ebb")
        bench.peer.react = lambda message, number: bench.peer.answer(message, 0.1) if number else None
        asked = [asyncio.ensure_future(bench.get()) for _ in range(2)]
        await asyncio.sleep(0.1)
        control.uninstall()
        control = coapace.aiocoap.install(bench.context, "cocoa")
        assert [gauges.mechanism for gauges in control.remotes.values()] == ["ebb"]
        for response in await asyncio.gather(*asked):
            assert response.code == aiocoap.CONTENT
        token = response.token
        assert [len(message.token) - len(token) for _, message in bench.peer.departed] == [0, 1, 0, 1]
        assert control.remotes == {}
        await bench.get()
        assert [gauges.mechanism for gauges in control.remotes.values()] == ["cocoa"]

    bench.run(test)


def test_a_context_that_is_shut_down_has_no_timer_left(bench: Bench) -> None:
    async def test() -> None:
        coapace.aiocoap.install(bench.context, lambda remote: "rtt-coap" if remote.hostinfo == "a" else "cocoa")
        bench.peer.react = lambda message, number: bench.peer.answer(message, 0.1) if message.remote.hostinfo == "a" else None
        with pytest.warns(UserWarning, match="marks by option"):
            await bench.get("a")
        asked = [asyncio.ensure_future(bench.get(host)) for host in "aab"]
        await asyncio.sleep(0.01)
        await bench.context.shutdown()
        failed = await asyncio.gather(*asked, return_exceptions=True)
        assert all(isinstance(one, error.LibraryShutdown) for one in failed)
        departed = len(bench.peer.departed)
        await asyncio.sleep(300)
        assert len(bench.peer.departed) == departed
        await bench.open()

    bench.run(test)


def test_without_aiocoap_a_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec("coapace.aiocoap")
    assert found is not None and found.loader is not None
    monkeypatch.setitem(sys.modules, "aiocoap", None)
    with pytest.raises(ImportError, match=r"pip install 'coapace\[aiocoap\]'"):
        found.loader.exec_module(importlib.util.module_from_spec(found))


def test_what_cannot_be_installed_is_refused(bench: Bench) -> None:
    async def test() -> None:
        with pytest.raises(ValueError, match="cocos"):
            coapace.aiocoap.install(bench.context, "cocos")
        with pytest.raises(ValueError, match="must be 0 or more"):
            coapace.aiocoap.install(bench.context, "cocoa", limit=-1)
        with pytest.raises(ValueError, match="no transport over datagrams"):
            coapace.aiocoap.install(aiocoap.Context(loop=bench.loop), "cocoa")
        coapace.aiocoap.install(bench.context, lambda remote: "cocos")
        with pytest.raises(ValueError, match="cocos"):
            await bench.get()

    bench.run(test)


def test_a_server_of_aiocoap_answers_over_loopback() -> None:
    async def test() -> None:
        from aiocoap import resource

        class Hello(resource.Resource):  # type: ignore[misc] # aiocoap has no types
            async def render_get(self, request: Message) -> Message:
                return Message(payload=b"hello")

        site = resource.Site()
        site.add_resource(["hello"], Hello())
        server = await aiocoap.Context.create_server_context(site, bind=("::1", 0), transports=["simplesocketserver"])
        port = server.request_interfaces[0].token_interface.message_interface._pool._transport.get_extra_info("sockname")[1]
        client = await aiocoap.Context.create_client_context(transports=["simple6"])
        control = coapace.aiocoap.install(client, "fasor")
        for _ in range(3):
            request = client.request(Message(code=aiocoap.GET, uri=f"coap://[::1]:{port}/hello"))
            assert (await request.response).payload == b"hello"
        (gauges,) = control.remotes.values()
        assert gauges.srtt is not None
        await client.shutdown()
        await server.shutdown()

    asyncio.run(test())
