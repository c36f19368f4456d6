"""A relay: 100,000 malformed datagrams from either side, 20,000 sources, no sockets left, a server that is gone, kill -9.

After each of them an honest client gets its answer through the same relay, or through the next one at the same port.
"""

import os
import random
import resource
import socket
import sys
import time

from loopback import GET, Addresses, Bounds, Client, Message, Relay, Server, malformed, path, request

MALFORMED, SOURCES, ASKING = 100_000, 20_000, 500
bounds, command = Bounds(), sys.argv[1]
random.seed(1)


def answers(relay, seconds=40):
    """Returns after how many seconds an honest client has its answer. It asks again when it is told 5.03."""
    client, begun = Client(relay.address()), time.monotonic()
    while (passed := time.monotonic() - begun) < seconds:
        answer = client.ask(GET, path(".well-known/core"), seconds=seconds - passed)
        if answer is not None and answer.code == 0x45:
            return time.monotonic() - begun
        time.sleep(1)
    return float("inf")


server = Server(command, "--demo")

# Malformed datagrams of clients.
relay = Relay(command, server.address())
assert answers(relay) < 40, "the relay does not work at all"
before, forged = relay.memory(), Addresses()
for number in range(MALFORMED):
    forged.send(number % 64, malformed(), relay.address())
    if number % 64 == 0:
        forged.drop()
bounds.check((after := answers(relay)) < 40, f"{MALFORMED} malformed datagrams of clients: an honest client gets its answer after {after:.0f} s (40)")
grown = relay.memory() - before
bounds.check(grown < 60, f"the relay's memory has grown by {grown:.0f} MiB (60)")

# Many sources. Each asks once, all at the same time; ports are closed for others or requests refused, and none is kept.
for number in range(SOURCES):
    forged.send(number, request(GET, number & 0xffff, b"", path(".well-known/core")), relay.address())
    if number % 32 == 0:
        forged.drop()
        time.sleep(0.001)
bounds.check((after := answers(relay)) < 40, f"{SOURCES} sources: an honest client gets its answer after {after:.0f} s (40)")
ports = relay.metric("coap_relay_sources")
bounds.check(ports <= 1_024, f"{ports:.0f} ports are open ({1_024})")
open_files = len(os.listdir(f"/proc/{relay.process.pid}/fd"))
bounds.check(open_files <= 1_024 + 64, f"{open_files} descriptors are open ({1_024 + 64})")
grown = relay.peak() - before
bounds.check(grown < 100, f"the relay's memory was at most {grown:.0f} MiB larger (100)")
bounds.check(any("went to a newer client" in line for line in relay.log), "the log says that ports went to newer clients")
bounds.check(relay.end() == 0, "it ends cleanly")

# A limit of descriptors at the start, and one that comes later.
relay = Relay(command, server.address(), limit=100)
for number in range(ASKING):
    forged.send(number, request(GET, number, b"", path(".well-known/core")), relay.address())
bounds.check((after := answers(relay)) < 40, f"{ASKING} sources and 100 descriptors: an honest client gets its answer after {after:.0f} s (40)")
bounds.check(any("ulimit" in line for line in relay.log), "the log says that descriptors are few")
relay.end()
relay = Relay(command, server.address())
resource.prlimit(relay.process.pid, resource.RLIMIT_NOFILE, (40, 40))
for number in range(ASKING):
    forged.send(number, request(GET, number, b"", path(".well-known/core")), relay.address())
bounds.check((after := answers(relay)) < 40, f"{ASKING} sources and no descriptor left: an honest client gets its answer after {after:.0f} s (40)")
refused = relay.metric("coap_relay_ports_refused_total")
time.sleep(1.5)
bounds.check(refused > 0 and any("the system refused (ulimit -n)" in line for line in relay.log), f"{refused:.0f} ports without room; the log says so")
relay.end()

# All descriptors are taken by clients of a silent server, and the metrics can be read.
silent = Addresses()
relay = Relay(command, ("127.0.0.1", silent.socket.getsockname()[1]))
resource.prlimit(relay.process.pid, resource.RLIMIT_NOFILE, (40, 40))
for number in range(ASKING):
    forged.send(number, request(GET, number, b"", path("a")), relay.address())
time.sleep(0.5)
scrapes = [relay.metric("coap_relay_ports_refused_total") for _ in range(20)]
bounds.check(all(scrapes), f"no descriptor left and a silent server: the metrics were read {sum(map(bool, scrapes))} times (20)")
relay.end()

# A server that sends garbage.
garbage = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
garbage.bind(("127.0.0.1", 0))
relay = Relay(command, garbage.getsockname())
asking = Client(relay.address())
asking.socket.sendto(request(GET, 1, b"tok", path("a")), relay.address())
garbage.settimeout(10)
asked, port = garbage.recvfrom(2_048)
before = relay.memory()
for number in range(MALFORMED // 4):
    garbage.sendto(malformed(), port)
    if number % 32 == 0:
        time.sleep(0.0005)
number = Message(asked).number
garbage.sendto(b"\x63\x45" + number.to_bytes(2, "big") + b"tok\xffhello", port)
end, got = time.monotonic() + 10, None
asking.socket.settimeout(1)
while time.monotonic() < end and not (got or b"").endswith(b"hello"):
    try:
        got = asking.socket.recv(2_048)  # what looks like DTLS passes as it is, and may fill the buffer
    except TimeoutError:
        asking.socket.sendto(request(GET, 1, b"tok", path("a")), relay.address())
bounds.check((got or b"").endswith(b"hello"), f"{MALFORMED // 4} malformed datagrams of a server: the answer after them passes")
grown = relay.memory() - before
bounds.check(grown < 20, f"the relay's memory has grown by {grown:.0f} MiB (20)")
relay.end()

# A server that is silent: how much is it sent? An app that asks as fast as it may does not change that.
silent = Addresses()
relay = Relay(command, ("127.0.0.1", silent.socket.getsockname()[1]))
for number in range(50):
    forged.send(number, request(GET, 1, b"", path("a")), relay.address())
end, sent = time.monotonic() + 10, 0
while (left := end - time.monotonic()) > 0:
    sent += silent.receive(left) is not None
    forged.drop()
bounds.check(50 <= sent <= 5 * 50, f"50 requests to a silent server: {sent} datagrams in 10 s ({5 * 50})")
relay.end()

# Killed in the middle of requests, and started again at the same port.
relay, failed = Relay(command, server.address()), 0
for _ in range(10):
    client = Client(relay.address())
    client.socket.sendto(request(GET, 7, b"t", path("delayed?s=1")), relay.address())
    time.sleep(random.uniform(0, 0.05))
    port = relay.address()[1]
    relay.process.kill()
    relay.process.wait()
    relay = Relay(command, server.address(), port=port)
    client.socket.sendto(request(GET, 7, b"t", path("delayed?s=1")), relay.address())
    end, answer = time.monotonic() + 10, None
    while time.monotonic() < end and (answer is None or answer.code != 0x45):
        answer = client.receive(1) or answer
    failed += answer is None or answer.code != 0x45
bounds.check(failed == 0, f"10 times killed and started again: {failed} copies of requests without an answer (0)")
bounds.exit()
