"""A relay in front of a server as a reflector: small requests with the address of a victim, for large answers.

The relay asks for an Echo option what it does not trust. Here it trusts nobody, because every source is on loopback; anywhere
else that is so by default.
"""

import sys
import time

from loopback import GET, OBSERVE, POST, Addresses, Bounds, Client, Relay, Server, path, request

HEADERS, TIMES = 28, 101
bounds, command = Bounds(), sys.argv[1]
server = Server(command, "--demo")
relay = Relay(command, server.address(), "--sluice", "--trust", "none")
victim = Addresses()
for what, code, pairs, payload in [
    ("GET", GET, path("large"), b""),
    ("GET of links", GET, path(".well-known/core"), b""),
    ("POST", POST, path("echo"), b"x"),
    ("late GET", GET, path("delayed?s=1"), b""),
    ("observing GET", GET, [(OBSERVE, b""), *path("clock")], b""),
]:
    asked = 0
    for number in range(TIMES):
        datagram = request(code, number, b"", pairs, payload)
        asked += HEADERS + len(datagram)
        victim.send(number, datagram, relay.address())
    told, end = 0, time.monotonic() + 8
    while (left := end - time.monotonic()) > 0:
        received = victim.receive(left)
        told += HEADERS + len(received[1]) if received else 0
    bounds.check(0 < told <= 3 * asked, f"{what}: the victim was sent {told / asked:.1f} times the bytes that the attacker sent (3)")
honest = Client(relay.address(), "127.9.0.1")
answer = honest.ask(GET, path("large"), seconds=20)
whole = answer is not None and answer.code == 0x45 and len(answer.payload) >= 1_024
bounds.check(whole, "a client that shows an Echo option gets the large answer")
bounds.check(relay.end() == 0, "it ends cleanly")
bounds.exit()
