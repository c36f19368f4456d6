"""A load, no attack: 20,000 observers under `--cc fasor`, each notified of 5 changes.

The initial RTO is 8 s instead of 2 s, so that the buckets of the metrics tell it from measured ones.
No notification is lost, an RTO is measured and kept for every observer, and the memory of an observer is printed. All clients
are one socket with 20,000 addresses, which acknowledges notifications and returns Echo options.
"""

import re
import socket
import struct
import sys
import time

from loopback import ACK, CON, ECHO, GET, OBSERVE, POST, Addresses, Bounds, Client, Message, Server, path, request

OBSERVERS, CHANGES = 20_000, 5
bounds, command = Bounds(), sys.argv[1]
server = Server(command, "--demo", "--cc", "fasor:initial_rto=8s", "--metrics", "127.0.0.1:0")
clients = Addresses()
counter = [(OBSERVE, b""), *path("counter")]
before = server.memory()
registered, told, values = set(), [0] * OBSERVERS, [set() for _ in range(OBSERVERS)]


def hear(seconds):
    """Handles the datagrams that have arrived. Returns whether there were any."""
    received = clients.receive(seconds)
    if received is None:
        return False
    source, datagram = received
    message = Message(datagram)
    if not 0 <= source < OBSERVERS or message.token != b"\x07":
        return True
    if message.code == 0x81 and message.option(ECHO) is not None:
        clients.send(source, request(GET, 2, b"\x07", [*counter, (ECHO, message.option(ECHO))]), server.address())
    elif message.code == 0x45 and message.kind == ACK:
        registered.add(source)
    elif message.code == 0x45 and message.kind == CON:
        clients.send(source, struct.pack("!BBH", 0x40 | ACK << 4, 0, message.number), server.address())
        values[source].add(message.payload)
    return True


begun = time.monotonic()
for attempt in range(4):
    for source in range(OBSERVERS):
        if source not in registered:
            clients.send(source, request(GET, 1 + 10 * attempt, b"\x07", counter), server.address())
            while hear(0):
                pass
    while hear(0.5):
        pass
bounds.check(len(registered) == OBSERVERS, f"{len(registered)} of {OBSERVERS} registered in {time.monotonic() - begun:.0f} s")

poster = Client(server.address())
for change in range(1, CHANGES + 1):
    answer = poster.ask(POST, path("counter"))
    payload, end = answer.payload, time.monotonic() + 40
    while time.monotonic() < end and sum(payload in seen for seen in values) < OBSERVERS:
        for _ in range(4_000):
            if not hear(0.02):
                break
got = sum(len(seen) for seen in values)
bounds.check(got == OBSERVERS * CHANGES, f"{got} of {OBSERVERS * CHANGES} notifications, all of them different")

with socket.create_connection(server.address("http"), 10) as connection:
    connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
    metrics = b"".join(iter(lambda: connection.recv(65_536), b"")).decode()
buckets = [
    (float(bound), int(count))
    for bound, count in re.findall(r'coap_rto_seconds_bucket\{le="([0-9.e+-]+)"\} (\d+)', metrics)
]
quick = max(count for bound, count in buckets if bound <= 5)
learnt = OBSERVERS * (CHANGES - 1)
bounds.check(
    quick >= learnt,
    f"{quick} notifications departed with an RTO below 5 s, where the initial one is 8 s (at least {learnt}: all but the first of each)",
)
evicted = server.metric("coap_peers_evicted_total")
bounds.check(evicted == 0, f"{evicted:.0f} peers were forgotten (0)")
each = (server.memory() - before) * 1_024 * 1_024 / OBSERVERS
bounds.check(each <= 2_048, f"{each:.0f} bytes of memory for each observer (at most 2048)")
bounds.exit()
