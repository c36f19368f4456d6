"""Bytes that a server sends to an address that it has not verified, for each byte that came from there.

Each request comes once, from a source of its own that never answers, and what that is sent within a minute is counted, with 28
bytes of headers for each datagram: answers, notifications and all copies.
"""

import sys
import time

from loopback import GET, NON, OBSERVE, POST, PUT, Addresses, Bounds, Client, Server, path, request

HEADERS, SECONDS = 28, 60
bounds, command = Bounds(), sys.argv[1]
server = Server(command, "--demo", "--trust", "none")
DELETE, FETCH, PATCH, IPATCH = 4, 5, 6, 7
asked = {
    "an observer of a clock": request(GET, 1, b"a", [(OBSERVE, b""), *path("clock")]),
    "an observer, not confirmable": request(GET, 2, b"a", [(OBSERVE, b""), *path("clock")], kind=NON),
    "an observer of a large text": request(GET, 3, b"a", [(OBSERVE, b""), *path("large")]),
    "a late response": request(GET, 4, b"a", path("delayed?s=1")),
    "a large response": request(GET, 5, b"", path("large")),
    "links": request(GET, 6, b"", path(".well-known/core")),
    "4.04": request(GET, 7, b"", path("a")),
    "4.02": request(GET, 8, b"", [(9, b"")]),
    "an empty request": request(GET, 9, b"", []),
    "a ping": b"\x40\0\0\x0a",
    "no CoAP": b"\x40\xff\0\x0b",
} | {f"method 0.0{code}": request(code, 20 + code, b"", path("echo"), b"x") for code in (POST, PUT, DELETE, FETCH, PATCH, IPATCH)}
victims = Addresses()
for number, datagram in enumerate(asked.values()):
    victims.send(number, datagram, server.address())
told, end = [0] * len(asked), time.monotonic() + SECONDS
while (left := end - time.monotonic()) > 0:
    received = victims.receive(left)
    if received:
        told[received[0]] += HEADERS + len(received[1])
for number, (what, datagram) in enumerate(asked.items()):
    factor = told[number] / (HEADERS + len(datagram))
    bounds.check(factor <= 3, f"{what}: {factor:.1f} times the bytes in {SECONDS} s (3)")
honest, news = Client(server.address(), "127.9.0.1"), 0
answer = honest.exchange(GET, [(OBSERVE, b""), *path("clock")])
end = time.monotonic() + 20
while answer is not None and time.monotonic() < end and news < 5:
    news += (message := honest.receive(1)) is not None and message.code == 0x45
bounds.check(news == 5, f"an observer that does not know Echo and acknowledges is sent {news} notifications (5)")
bounds.exit()
