"""A relay with keys: 100,000 datagrams that are no DTLS, or hardly, or begin handshakes; 2,000 half-open ones; a server's garbage.

Nothing is kept for a source that does not show its address, no source is sent more than it has sent, and the sessions that are kept are
bounded. A client with the key is served in between and after, and by a server behind garbage.
"""

import collections
import os
import random
import socket
import subprocess
import sys
import time

from loopback import GET, Addresses, Bounds, Client, Relay, Server, hello, malformed, path, request

DATAGRAMS, SOURCES, HALF, GARBAGE = 100_000, 10_000, 2_000, 20_000
KEYS = ["--identity", "lamp", "--key", "secret"]
bounds, command = Bounds(), sys.argv[1]
random.seed(1)


def record(kind, epoch, body):
    """Returns a record with any content (RFC 6347 §4.1)."""
    return bytes([kind]) + b"\xfe\xfd" + epoch.to_bytes(2, "big") + os.urandom(6) + len(body).to_bytes(2, "big") + body


def hostile():
    """Returns a datagram that no client with the key sends."""
    kind = random.randrange(6)
    if kind == 0:
        return hello(os.urandom(32), 0, b"")
    if kind == 1:
        return hello(os.urandom(32), 1, os.urandom(random.choice([0, 1, 20, 32, 200])))
    if kind == 2:
        return record(random.randrange(18, 28), random.randrange(3), os.urandom(random.randrange(200)))
    if kind == 3:
        return malformed()
    changed = bytearray(hello(os.urandom(32), random.randrange(3), b""))
    if kind == 4:
        return bytes(changed[:random.randrange(1, len(changed))])
    for _ in range(random.randrange(1, 6)):
        changed[random.randrange(len(changed))] = random.randrange(256)
    return bytes(changed)


def served(relay):
    """Returns the seconds of a handshake and a GET."""
    begun, uri = time.monotonic(), f"coaps://127.0.0.1:{relay.uris['coaps']}/counter"
    got = subprocess.run([command, "get", uri, *KEYS], capture_output=True, timeout=60, check=False)
    return time.monotonic() - begun if got.returncode == 0 else float("inf")


server = Server(command, "--demo")
relay = Relay(command, server.address(), *KEYS)
to = relay.address("coaps")
assert served(relay) < 10, "the relay does not work at all"
before = relay.memory()

# Sources that do not show their address.
forged, balance, between = Addresses(), collections.Counter(), None


def collect():
    while (arrived := forged.receive(0)) is not None:
        balance[arrived[0]] -= len(arrived[1])


for number in range(DATAGRAMS):
    datagram, source = hostile(), number % SOURCES
    balance[source] += len(datagram)
    forged.send(source, datagram, to)
    if number % 32 == 0:
        collect()
    if number == DATAGRAMS // 2:
        between = served(relay)
time.sleep(0.2)
collect()
bounds.check(between < 10, f"a client with the key between {DATAGRAMS} datagrams is served after {between:.1f} s (10)")
bounds.check((after := served(relay)) < 10, f"and after them, after {after:.1f} s (10)")
worst = min(balance.values())
bounds.check(worst >= 0, f"of {SOURCES} sources none is sent more than it has sent ({-min(worst, 0)} bytes more at most)")
asked, strays = relay.metric("coap_dtls_cookies_total"), relay.metric("coap_dtls_strays_total")
bounds.check(asked > DATAGRAMS // 12 and strays > DATAGRAMS // 4, f"{asked:.0f} cookies asked for, {strays:.0f} strays")
sessions = relay.metric("coap_sessions")
bounds.check(sessions <= 3, f"{sessions:.0f} sessions are kept (3, those of the client)")

# Plain CoAP gets no answer.
plain = Client(to)
bounds.check(plain.ask(GET, path("counter"), seconds=2) is None, "a client without DTLS gets no answer")

# Sources that show their address, and nothing more. Handshakes may be an eighth of 1,024 sessions.
for number in range(HALF):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.bind((f"127.3.{number >> 8}.{number & 255}", 0))
        client.settimeout(2)
        client.connect(to)
        nonce = os.urandom(32)
        client.send(hello(nonce, 0, b""))
        asked = client.recv(2_048)
        client.send(hello(nonce, 1, asked[28:28 + asked[27]]))
        client.send(record(22, 1, os.urandom(40)))
bounds.check((after := served(relay)) < 10, f"{HALF} half-open handshakes: a client is served after {after:.1f} s (10)")
sessions = relay.metric("coap_sessions")
bounds.check(sessions <= 128 + 4, f"{sessions:.0f} sessions and handshakes are kept (132)")
grown = relay.peak() - before
bounds.check(grown < 30, f"the relay's memory was at most {grown:.0f} MiB larger (30)")
bounds.check(relay.lives() and relay.end() == 0, "it ends cleanly")

# A server that sends garbage before it speaks. All sockets are on loopback: what comes from the server's side is forwarded.
secured, garbage = Server(command, "--demo", *KEYS), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
garbage.bind(("127.0.0.1", 0))
relay = Relay(command, garbage.getsockname(), "--server-identity", "lamp", "--server-key", "secret")
asking = Client(relay.address())
datagram = request(GET, 1, b"tok", path("counter"))
asking.socket.sendto(datagram, relay.address())
garbage.settimeout(10)
_, port = garbage.recvfrom(2_048)
before = relay.memory()
for number in range(GARBAGE):
    garbage.sendto(hostile(), port)
    if number % 32 == 0:
        time.sleep(0.0005)
grown = relay.memory() - before
bounds.check(grown < 20, f"{GARBAGE} datagrams of a server: the relay's memory has grown by {grown:.0f} MiB (20)")
onward = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
onward.connect(secured.address("coaps"))
for each in (onward, garbage, asking.socket):
    each.setblocking(False)
end, begun, got, again = time.monotonic() + 15, time.monotonic(), None, 0


def arrived(each):
    try:
        return each.recvfrom(4_096)
    except (BlockingIOError, ConnectionError):
        return None


while time.monotonic() < end and got is None:
    if time.monotonic() >= again:
        asking.socket.sendto(datagram, relay.address())
        again = time.monotonic() + 1
    for each in (onward, garbage, asking.socket):
        while (taken := arrived(each)) is not None:
            if each is garbage:
                port = taken[1]
                onward.send(taken[0])
            elif each is onward:
                garbage.sendto(taken[0], port)
            elif taken[0][1] == 0x45:
                got = time.monotonic() - begun
    time.sleep(0.002)
bounds.check(got is not None, f"the answer after them passes, after {got or float('inf'):.1f} s (15)")
bounds.exit()
