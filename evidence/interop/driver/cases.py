"""The cases: the requests of a client, the correct answers of the server, and the checks on the datagrams between them.

Every case is the same whichever side is ours. A case is a function that takes a `Pair` and raises `Failure`."""

import time

from .message import ACKNOWLEDGEMENT, BLOCK1, BLOCK2, CONFIRMABLE, CONTENT_FORMAT, NON_CONFIRMABLE, OBSERVE, RESET
from .process import Failure, call
from .relay import Relay

#: A key that both sides have, and one that neither has.
IDENTITY, KEY, WRONG_KEY = "lamp-7", "a long secret", "another secret"
#: A body of more than one block: the lines that every server has at /large.
LARGE = "".join(f"{offset:<63}\n" for offset in range(0, 8192, 64)).encode()
#: All cases by name, in the order of the table.
CASES = {}


def case(name):
    def keep(function):
        CASES[name] = function
        return function
    return keep


class Pair:
    """A client of one stack and a server of another."""

    def __init__(self, client, ports, name, limit):
        #: `limit` is the longest duration of one call of the client, in seconds.
        self.program, self.ports, self.limit = client, ports, limit
        #: A resource that no other case touches.
        self.store = f"/store/{name.replace(' ', '-')}"
        #: The relays between them, to print the datagrams of a failed case.
        self.relays = []

    def ask(self, method, path, payload=b"", *flags, via=None, scheme="coap", limit=None):
        """Makes one call of the client. Returns a list of codes and payloads, one for each response. `via` is a
        relay."""
        port = via.port if via else self.ports[scheme]
        words = [self.program, method, f"{scheme}://127.0.0.1:{port}{path}", *flags]
        status, out, said = call(words, payload, limit or self.limit)
        if status != 0:
            raise Failure(f"{method} {path}: the client exits with {status}: {said}")
        responses = []
        for line in out.splitlines():
            code, _, digits = line.partition(" ")
            responses.append((code, bytes.fromhex(digits)))
        return responses

    def one(self, *arguments, code, payload=None, **named):
        """Makes a request. Expects one response with this code (or one of several) and this payload."""
        codes = (code,) if isinstance(code, str) else code
        responses = self.ask(*arguments, **named)
        what = f"{arguments[0]} {arguments[1]}"
        if len(responses) != 1 or responses[0][0] not in codes:
            raise Failure(f"{what}: {shown(responses)} instead of {' or '.join(codes)}")
        if payload is not None and responses[0][1] != payload:
            raise Failure(f"{what}: {shown(responses)} instead of {short(payload)}")
        return responses[0][1]

    def relay(self, lose=None):
        self.relays.append(Relay(self.ports["coap"], lose))
        return self.relays[-1]


def short(payload):
    return repr(payload) if len(payload) <= 40 else f"{len(payload)} bytes, {payload[:20]!r}…"


def shown(responses):
    return ", ".join(f"{code} {short(payload)}" for code, payload in responses) or "no response"


def want(fact, words):
    if not fact:
        raise Failure(words)


@case("GET")
def get(pair):
    with pair.relay() as relay:
        pair.one("GET", "/hello", code="2.05", payload=b"Hello", via=relay)
        want([message.type for _, message in relay.messages()] == [CONFIRMABLE, ACKNOWLEDGEMENT],
             "not one confirmable request and one acknowledgement")


@case("GET with a query")
def query(pair):
    pair.one("GET", "/large?bytes=100", code="2.05", payload=LARGE[:100])


@case("PUT")
def put(pair):
    pair.one("PUT", pair.store, b"one", code="2.01")
    pair.one("PUT", pair.store, b"two", code="2.04")
    pair.one("GET", pair.store, code="2.05", payload=b"two")


@case("POST")
def post(pair):
    pair.one("POST", "/echo", b"posted", code="2.04", payload=b"posted")


@case("DELETE")
def delete(pair):
    pair.one("PUT", pair.store, b"one", code="2.01")
    pair.one("DELETE", pair.store, code="2.02")
    pair.one("GET", pair.store, code="4.04")


@case("FETCH")
def fetch(pair):
    pair.one("FETCH", "/echo", b"fetched", code="2.05", payload=b"fetched")


@case("PATCH")
def patch(pair):
    pair.one("PATCH", "/echo", b"patched", code="2.04", payload=b"patched")


@case("iPATCH")
def ipatch(pair):
    pair.one("iPATCH", "/echo", b"patched", code="2.04", payload=b"patched")


@case("4.04")
def not_found(pair):
    pair.one("GET", "/nothing", code="4.04")


@case("separate response")
def separate(pair):
    with pair.relay() as relay:
        pair.one("GET", "/delayed?s=1", code="2.05", payload=b"1 s later", via=relay)
        answers = [message for _, message in relay.messages("server")]
        want(answers[0].type == ACKNOWLEDGEMENT and answers[0].code == "0.00", "no empty acknowledgement at first")
        response = answers[1]
        want(response.type in (CONFIRMABLE, NON_CONFIRMABLE) and response.code == "2.05", "no separate response")
        acknowledged = [message.id for _, message in relay.messages("client") if message.type == ACKNOWLEDGEMENT]
        want(response.type == NON_CONFIRMABLE or response.id in acknowledged, "the response is not acknowledged")


@case("NON")
def non(pair):
    with pair.relay() as relay:
        pair.one("GET", "/hello", b"", "non", code="2.05", payload=b"Hello", via=relay)
        seen = relay.messages()
        want(len(seen) == 2 or seen[1][1].type == CONFIRMABLE, f"{len(seen)} messages for a non-confirmable request")
        want(seen[0][1].type == NON_CONFIRMABLE, "the request is not non-confirmable")
        # The response should be non-confirmable, but need not be (RFC 7252 §5.2.3).
        want(seen[1][1].type in (CONFIRMABLE, NON_CONFIRMABLE), "the response is an acknowledgement")


@case("request lost")
def lost_request(pair):
    with pair.relay("client") as relay:
        pair.one("GET", "/hello", code="2.05", payload=b"Hello", via=relay)
        sent = [message for _, message in relay.messages("client")]
        want(len(sent) == 2 and sent[0] == sent[1], "the request was not retransmitted as it was")


@case("response lost")
def lost_response(pair):
    before = int(pair.one("GET", "/counter", code="2.05"))
    with pair.relay("server") as relay:
        pair.one("POST", "/counter", code="2.04", payload=str(before + 1).encode(), via=relay)
        first, second = [message for _, message in relay.messages("client")][:2]
        want(first == second, "the request was not retransmitted as it was")
    pair.one("GET", "/counter", code="2.05", payload=str(before + 1).encode())


@case("Observe")
def observe(pair):
    with pair.relay() as relay:
        follow(pair, via=relay)
        time.sleep(0.3)  # time for datagrams that are still on their way
        sent = relay.messages()
        notifications = [message for side, message in sent if side == "server" and message.option(OBSERVE) is not None]
        want(len(notifications) >= 4, f"{len(notifications)} responses with Observe instead of 4")
        asked = [message for side, message in sent if side == "client" and message.is_request]
        ends = [message for message in asked if message.option(OBSERVE) == 1]
        want(all(message.token == asked[0].token for message in ends), "the cancellation has another token")
        known = {message.id for message in notifications}
        resets = [message for side, message in sent if side == "client" and message.type == RESET and message.id in known]
        want(asked[0].option(OBSERVE) == 0, "no Observe: 0 in the request")
        want(ends or resets, "the client does not cancel: neither Observe: 1 nor a Reset")
        time.sleep(1.5)  # the clock ticks meanwhile
        want(len(relay.messages()) == len(sent), "the server goes on after it was told to stop")


def follow(pair, *flags, **named):
    responses = pair.ask("GET", "/clock", b"", "observe=4", *flags, **named)
    want(len(responses) == 4 and all(code == "2.05" for code, _ in responses), f"{shown(responses)} instead of 4 times 2.05")
    seconds = [int(payload) for _, payload in responses]
    want(seconds == sorted(seconds) and seconds[-1] >= seconds[0] + 2, f"seconds are {seconds}")


def blocks(relay, side, number):
    """Returns the numbers and sizes of the blocks that one side sent."""
    return [message.block(number) for sender, message in relay.messages(side) if message.block(number)]


@case("Block2")
def block2(pair):
    with pair.relay() as relay:
        pair.one("GET", "/large", code="2.05", payload=LARGE, via=relay)
        want(len(blocks(relay, "server", BLOCK2)) >= 8, "it did not come in blocks")


@case("Block2 of 64 bytes")
def block2_small(pair):
    with pair.relay() as relay:
        pair.one("GET", "/large?bytes=1000", b"", "block=64", code="2.05", payload=LARGE[:1000], via=relay)
        sizes = {size for _, size in blocks(relay, "server", BLOCK2)}
        want(sizes == {64}, f"the blocks are of {sizes or 'no'} bytes")


@case("Block1")
def block1(pair):
    with pair.relay() as relay:
        pair.one("PUT", pair.store, LARGE[:5000], code="2.01", via=relay)
        want(len(blocks(relay, "client", BLOCK1)) >= 5, "it did not go in blocks")
    pair.one("GET", pair.store, code="2.05", payload=LARGE[:5000])


@case("Block1 of 64 bytes")
def block1_small(pair):
    with pair.relay() as relay:
        pair.one("PUT", pair.store, LARGE[:1000], "block=64", code="2.01", via=relay)
        sizes = {size for _, size in blocks(relay, "client", BLOCK1)}
        want(sizes == {64}, f"the blocks are of {sizes or 'no'} bytes")
    pair.one("GET", pair.store, code="2.05", payload=LARGE[:1000])


@case("Block1 and Block2")
def both_blocks(pair):
    pair.one("POST", "/echo", LARGE[:5000], code="2.04", payload=LARGE[:5000])


@case(".well-known/core")
def core(pair):
    with pair.relay() as relay:
        links = pair.one("GET", "/.well-known/core", code="2.05", via=relay).decode()
        targets = {link.partition(";")[0].strip() for link in links.split(",")}
        want({"</hello>", "</clock>", "</large>"} <= targets, f"{links!r} lacks links")
        formats = {message.option(CONTENT_FORMAT) for _, message in relay.messages("server") if message.code == "2.05"}
        want(formats == {40}, f"the Content-Format is {formats}, not 40")


@case("ping")
def ping(pair):
    with pair.relay() as relay:
        pair.one("PING", "", code="0.00", via=relay)
        kinds = [(message.type, message.code) for _, message in relay.messages()]
        want(kinds == [(CONFIRMABLE, "0.00"), (RESET, "0.00")], f"no ping and Reset, but {kinds}")


def over(scheme, *flags):
    """Adds the cases that every transport has."""
    def asking(pair):
        return lambda *arguments, **named: pair.one(*arguments, *flags, scheme=scheme, **named)

    @case(f"{scheme} requests")
    def requests(pair):
        ask = asking(pair)
        ask("GET", "/hello", b"", code="2.05", payload=b"Hello")
        ask("PUT", pair.store, b"one", code="2.01")
        ask("GET", pair.store, b"", code="2.05", payload=b"one")
        ask("GET", "/nothing", b"", code="4.04")

    @case(f"{scheme} separate response")
    def late(pair):
        asking(pair)("GET", "/delayed?s=1", b"", code="2.05", payload=b"1 s later")

    @case(f"{scheme} large bodies")
    def large(pair):
        ask = asking(pair)
        ask("GET", "/large", b"", code="2.05", payload=LARGE)
        ask("PUT", pair.store, LARGE[:5000], code="2.01")
        ask("GET", pair.store, b"", code="2.05", payload=LARGE[:5000])

    @case(f"{scheme} Observe")
    def notified(pair):
        follow(pair, *flags, scheme=scheme)


over("coaps", f"identity={IDENTITY}", f"key={KEY}")


@case("coaps wrong key")
def wrong_key(pair):
    def hello(key, **named):
        return pair.ask("GET", "/hello", b"", f"identity={IDENTITY}", f"key={key}", scheme="coaps", **named)

    hello(KEY)
    try:
        responses = hello(WRONG_KEY, limit=8)
    except Failure:
        return
    raise Failure(f"it is answered: {shown(responses)}")


def over_stream(scheme):
    """Adds the cases of a reliable transport."""
    over(scheme)

    @case(f"{scheme} ping")
    def ping(pair):
        pair.one("PING", "", code="0.00", scheme=scheme)


for reliable in ("coap+tcp", "coaps+tcp", "coap+ws"):
    over_stream(reliable)
