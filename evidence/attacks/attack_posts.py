"""Forged requests that are not idempotent, until copies of honest ones are no longer recognised.

A client sends 2000 POSTs. Then forged sources send POSTs as fast as they can for 8 s, during which another client makes up to
100 a second, and shows its address with an Echo option. Then the first client sends a copy of each of its POSTs: none is
carried out twice, because no request makes a server forget another one. What it cannot remember it does not carry out.
"""

import multiprocessing
import struct
import sys
import time

from loopback import GET, POST, Addresses, Bounds, Client, Message, Server, flood, path, request

POSTS, SECONDS = 2_000, 8
bounds, command = Bounds(), sys.argv[1]


def send(honest, to, answered):
    """Sends the POSTs of the honest client, a thousand a second, and notes the answers by Message ID."""
    for number in range(POSTS):
        honest.send(7, request(POST, number, struct.pack("!H", number), path("counter")), to)
        listen(honest, answered, 0.001)
    end = time.monotonic() + 2
    while time.monotonic() < end:
        listen(honest, answered, 0.1)


def listen(honest, answered, seconds):
    while (received := honest.receive(seconds)) is not None:
        message, seconds = Message(received[1]), 0
        answered.setdefault(message.number, set()).add(message.payload)


for memory in ("64M", "1G"):
    server = Server(command, "--demo", "--memory", memory, "--metrics", "127.0.0.1:0")
    counter, verified, honest = Client(server.address()), Client(server.address(), "127.9.0.1"), Addresses()
    before, answered = int(counter.ask(GET, path("counter")).payload), {}
    send(honest, server.address(), answered)
    sent = multiprocessing.Value("Q", 0, lock=False)
    flooder = multiprocessing.Process(target=flood, args=(server.address(), sent, POST, "forged"), daemon=True)
    flooder.start()
    begun, asked, done = time.monotonic(), 0, 0
    while time.monotonic() < begun + SECONDS:
        answer = verified.ask(POST, path("echo"), b"x", seconds=20)
        # A client has a bounded number of places for the 247 s that a request is remembered.
        time.sleep(0.01)
        asked, done = asked + 1, done + (answer is not None and answer.code >> 5 == 2)
    flooder.terminate()
    flooder.join()
    rate = sent.value / (time.monotonic() - begun)
    time.sleep(1)
    send(honest, server.address(), answered)
    carried = int(counter.ask(GET, path("counter"), seconds=20).payload) - before
    # The counter returns another number each time the request is carried out.
    twice = max(carried - POSTS, sum(len(numbers) > 1 for numbers in answered.values()))
    bounds.check(twice == 0, f"--memory {memory}, {rate:.0f} forged POSTs/s: {twice} of {POSTS} POSTs were carried out twice (0)")
    bounds.check(carried >= 0.9 * POSTS, f"{carried} of {POSTS} were carried out (90 %)")
    bounds.check(done == asked > 0, f"{done} of {asked} POSTs of a client that shows an Echo option succeed meanwhile (all)")
    refused = server.metric("coap_requests_unremembered_total")
    # A slow machine does not fill 1 GiB in 8 s.
    bounds.check(refused > 0 or memory == "1G", f"{refused:.0f} requests were not carried out, because they could not be remembered")
    server.stop()
bounds.exit()
