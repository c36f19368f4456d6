"""Writes without end: one client puts 64 KiB under another name each time, as fast as it is answered; a second client writes meanwhile."""

import sys
import threading
import time

from loopback import PUT, Bounds, Client, Server, connected, directory, over_tcp, path

SECONDS, LENGTH, RATE, FILES = 8, 60_000, 100, 2_500

bounds, command = Bounds(), sys.argv[1]
place = directory()
server = Server(command, "--directory", place, "--writable", "--tcp", "127.0.0.1:0", "--metrics", "127.0.0.1:0")
end = time.monotonic() + SECONDS
asked = [0]


def flood():
    connection, number = connected(server.address("coap+tcp")), 0
    while time.monotonic() < end:
        number += 1
        connection.sendall(over_tcp(PUT, b"", path(f"flood{number}"), b"x" * LENGTH))
        connection.recv(4_096)
        asked[0] = number


flooding = threading.Thread(target=flood, daemon=True)
flooding.start()
honest, answers = Client(server.address(), "127.0.0.2"), []
while time.monotonic() < end:
    answers.append(honest.ask(PUT, path("honest"), b"reading"))
    time.sleep(0.5)
flooding.join(30)
taken = sum(answer is not None and answer.code in (0x41, 0x44) for answer in answers)
written = server.metric("coap_stored_files")
most = min(RATE * (SECONDS + 2), FILES) + 1
bounds.check(0 < written <= most, f"{written:.0f} files of {asked[0]} asked for in {SECONDS} s (at most {most})")
bounds.check(taken == len(answers), f"{taken} of {len(answers)} writes of another client carried out (all)")
server.stop()
bounds.exit()
