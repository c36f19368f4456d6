"""Uploads: 20,000 first blocks from forged sources that never continue, and complete uploads meanwhile.

Uploads of 16 KiB, one block each 20 ms, arrive whole: 4 of 4. Their clients show an Echo option where they are asked for it.
"""

import os
import sys
import threading
import time

from loopback import BLOCK1, PUT, Addresses, Bounds, Client, Server, path, request

UPLOADS, BLOCKS = 4, 16
bounds, command = Bounds(), sys.argv[1]
server = Server(command, "--demo")
flooding, sent = True, 0


def block(number, more):
    value = number << 4 | more << 3 | 6
    return (BLOCK1, value.to_bytes(1 if value < 256 else 2, "big"))


def flood():
    global sent
    forged = Addresses()
    while flooding and sent < 2_000_000:
        sent += 1
        pairs = [*path("store/forged"), block(0, True)]
        forged.send(sent % 1_000_003, request(PUT, sent & 0xffff, b"", pairs, bytes(1_024)), server.address())
        if sent % 100 == 0:
            forged.drop()


def upload(number):
    """Returns whether an upload arrives."""
    client, body = Client(server.address()), os.urandom(1_024 * BLOCKS)
    where = path(f"store/{number}")
    for place in range(BLOCKS):
        part = body[1_024 * place:1_024 * place + 1_024]
        answer = client.ask(PUT, [*where, block(place, place < BLOCKS - 1)], part, seconds=10)
        if answer is None or answer.code >> 5 != 2:
            return False
        time.sleep(0.02)
    return True


flooder = threading.Thread(target=flood)
flooder.start()
time.sleep(2)
begun, before = time.monotonic(), sent
good = sum(upload(number) for number in range(UPLOADS))
rate = (sent - before) / (time.monotonic() - begun)
flooding = False
flooder.join()
bounds.check(good == UPLOADS, f"beside {rate:.0f} forged first blocks/s, {good} of {UPLOADS} uploads ({UPLOADS})")
bounds.exit()
