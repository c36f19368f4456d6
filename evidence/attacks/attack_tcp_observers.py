"""Observers over TCP: 150 connections that register 4096 times each, and 100 that observe a clock and read nothing.

Memory grows no more than the budget allows. Registrations without room are answered without the Observe option, and counted.
"""

import select
import struct
import sys
import time

from loopback import GET, OBSERVE, Bounds, Client, Server, connected, over_tcp, path

CONNECTIONS, OBSERVERS, BOUND = 150, 4_096, 250
bounds, command = Bounds(), sys.argv[1]


def observe(server, name, connections, read):
    """Opens connections with as many observers as they can have."""
    opened = []
    requests = b"".join(
        over_tcp(GET, struct.pack("!H", number), [(OBSERVE, b""), *path(name)]) for number in range(OBSERVERS)
    )
    for _ in range(connections):
        connection = connected(server.address("coap+tcp"))
        connection.setblocking(False)
        at, answered = 0, 0
        while at < len(requests) or read and answered < OBSERVERS * 8:
            readable, writable, _ = select.select([connection] * read, [connection] * (at < len(requests)), [], 0.3)
            if not readable and not writable:
                break
            try:
                if writable:
                    at += connection.send(requests[at:at + 8_192])
                if readable:
                    answered += len(connection.recv(65_536))
            except BlockingIOError:
                pass
        opened.append(connection)
    return opened


server = Server(command, "--demo", "--tcp", "127.0.0.1:0", "--metrics", "127.0.0.1:0")
before = server.memory()
opened = observe(server, "counter", CONNECTIONS, True)
time.sleep(2)
grown = server.peak() - before
bounds.check(grown <= BOUND, f"{CONNECTIONS} × {OBSERVERS} registrations: {grown:.0f} MiB (at most {BOUND})")
refused = server.metric("coap_tcp_observers_refused_total")
bounds.check(refused > 0, f"registrations refused and counted: {refused:.0f} (more than 0)")
answer = Client(server.address()).ask(GET, [(OBSERVE, b""), *path("counter")])
bounds.check(answer is not None and answer.option(OBSERVE) is not None, "a client over UDP may observe")
for connection in opened:
    connection.close()
server.stop()

server = Server(command, "--demo", "--tcp", "127.0.0.1:0")
opened = observe(server, "clock", 100, False)
time.sleep(3)
begun, used = time.monotonic(), server.cpu()
time.sleep(5)
share = (server.cpu() - used) / (time.monotonic() - begun)
bounds.check(share <= 0.5, f"100 connections that observe a clock and read nothing: {share:.2f} cores (at most 0.5)")
bounds.check(server.peak() <= BOUND, f"and {server.peak():.0f} MiB (at most {BOUND})")
bounds.exit()
