"""Forged registrations: 20,000 forged sources observe a counter, and then it changes.

Honest clients, which return an Echo option where they are asked for it, register before, during and after
that: 40 of 40. The number of datagrams to the forged sources after a change is bounded.
"""

import sys
import time

from loopback import CON, GET, OBSERVE, POST, Addresses, Bounds, Client, Message, Server, path, request

FORGED = 20_000
bounds, command = Bounds(), sys.argv[1]
server = Server(command, "--demo", "--metrics", "127.0.0.1:0")
forged = Addresses()
counter = [(OBSERVE, b""), *path("counter")]


def registered(count):
    """Registers new clients. Returns how many were accepted, and the clients."""
    clients = [Client(server.address()) for _ in range(count)]
    answers = [client.ask(GET, counter, seconds=3) for client in clients]
    return sum(answer is not None and answer.option(OBSERVE) is not None for answer in answers), clients


_, early = registered(10)
begun = time.monotonic()
during, middle = 0, []
for source in range(FORGED):
    forged.send(source, request(GET, source & 0xffff, b"\x01", counter), server.address())
    if source % 500 == 499:
        forged.drop()
        count, clients = registered(1)
        during, middle = during + count, middle + clients
seconds = time.monotonic() - begun
bounds.check(during == 40, f"beside {FORGED} forged registrations in {seconds:.0f} s, {during} of 40 honest ones (40)")
after, late = registered(40)
bounds.check(after == 40, f"after them, {after} of 40 honest ones (40)")
places = server.metric("coap_observers")
bounds.check(places <= 8_192, f"{places:.0f} observers are registered (at most 8192)")
# One change: counts the datagrams to forged sources, and checks that all other observers are notified.
Client(server.address()).ask(POST, path("counter"))
copies, end = 0, time.monotonic() + 12
told = set()
while time.monotonic() < end:
    if (received := forged.receive(0.05)) is not None:
        copies += Message(received[1]).kind == CON
    for number, client in enumerate(early + middle + late):
        if number not in told and client.receive(0.0001) is not None:
            told.add(number)
honest = len(early + middle + late)
bounds.check(len(told) == honest, f"one change was told to {len(told)} of {honest} honest observers ({honest})")
bounds.check(copies <= 5 * 2_200, f"and sent {copies} datagrams to forged sources within 12 s (at most 11000)")
bounds.exit()
