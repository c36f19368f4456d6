"""The emulator under 100,000 malformed datagrams, 20,000 sources, without sockets, and killed and restarted.

Its memory stays bounded, it says in a line what it lacks, and a client that follows the protocol is served afterwards.
"""

import atexit
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time

from loopback import GET, Addresses, Bounds, Client, Server, path, request

FLOOD = 100_000
SOURCES = 20_000
MEMORY = 256  # MiB

bounds, command = Bounds(), sys.argv[1]
behind = Server(command, "--demo")


class Emulator(Server):
    """A `coapace emulate` in front of a server. It says what it lacks on standard error."""

    def __init__(self, to, *arguments, files=None, port=0):
        limit = None if files is None else lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
        self.uris = {}
        self.process = subprocess.Popen(
            [command, "emulate", "lossy-lan", "--set", "loss=0 %", "--set", "delay=5 ms", "--listen",
             f"127.0.0.1:{port}", "--to", f"127.0.0.1:{to[1]}", "--metrics", "127.0.0.1:0", *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=limit,
        )
        atexit.register(self.stop)
        for _ in range(2):
            line = self.process.stdout.readline().strip()
            matched = re.match(r"([a-z+]+)://127\.0\.0\.1:(\d+)", line)
            if matched is None:
                sys.exit(f"   the emulator said {line!r}")
            self.uris[matched[1]] = int(matched[2])

    def end(self):
        """Interrupts the emulator. Returns its exit code, what it printed, and its complaints."""
        self.process.send_signal(signal.SIGINT)
        printed, complaints = self.process.communicate(timeout=15)
        return self.process.returncode, printed, complaints


def serves(emulator):
    """Returns whether a client that follows the protocol is answered."""
    answer = Client(emulator.address()).exchange(GET, path("/clock"), seconds=15)
    return answer is not None and answer.code == 0x45


def settled(emulator, count, seconds=60):
    """Waits until so many packets have entered, or the number stays, and returns it."""
    entered, end = -1, time.monotonic() + seconds
    while time.monotonic() < end:
        before, entered = entered, emulator.metric('coap_emulator_packets_total')
        if before == entered >= count:
            break
        time.sleep(0.5)
    return entered


malformed = [os.urandom(length) for length in range(0, 200)] + [bytes([0x4f]) + os.urandom(9), b"\x40", os.urandom(9_000)]
emulator = Emulator(behind.address())
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
begun = time.monotonic()
for number in range(FLOOD):
    sender.sendto(malformed[number % len(malformed)], emulator.address())
seconds = time.monotonic() - begun
settled(emulator, 1)
bounds.check(emulator.lives() and serves(emulator), f"{FLOOD} malformed datagrams in {seconds:.1f} s: a client is served")
bounds.check(emulator.peak() <= MEMORY, f"peak of memory {emulator.peak():.0f} MiB (at most {MEMORY})")
code, printed, complaints = emulator.end()
bounds.check(code == 0 and "arrived" in printed, f"interrupted: exit code {code}, and what happened is printed")

emulator = Emulator(behind.address(), "--sources", str(SOURCES // 2))
clients = Addresses()
for number in range(SOURCES):
    clients.send(number, request(GET, number & 0xffff, b"", path("/clock")), emulator.address())
    if number % 500 == 499:
        time.sleep(0.02)
        clients.drop()
settled(emulator, SOURCES)
places, replaced = emulator.metric("coap_emulator_sources"), emulator.metric("coap_emulator_problems_total")
bounds.check(places <= SOURCES // 2, f"{SOURCES} sources: {places:.0f} places (at most {SOURCES // 2})")
bounds.check(serves(emulator), f"a client is served; {replaced:.0f} problems are counted")
bounds.check(emulator.peak() <= MEMORY, f"peak of memory {emulator.peak():.0f} MiB (at most {MEMORY})")
code, _, complaints = emulator.end()
bounds.check("were replaced by new ones" in complaints, f"it says so: {complaints.strip().splitlines()[-1:]}")

emulator = Emulator(behind.address(), files=64)
for number in range(500):
    clients.send(number, request(GET, number, b"", path("/clock")), emulator.address())
settled(emulator, 1)
bounds.check(emulator.lives() and serves(emulator), "64 open files and 500 sources: a client is served")
code, _, complaints = emulator.end()
bounds.check(code == 0 and "ulimit -n" in complaints, "it says what it lacks: ulimit -n")

emulator = Emulator(behind.address())
port = emulator.uris["coap"]
bounds.check(serves(emulator), "a client is served before the emulator is killed")
emulator.process.kill()
emulator.process.wait()
again = Emulator(behind.address(), port=port)
bounds.check(serves(again), "and after it is started again at the same port")
taken = subprocess.run(
    [command, "emulate", "lossy-lan", "--listen", f"127.0.0.1:{port}", "--to", "127.0.0.1:9"],
    capture_output=True, text=True, timeout=10, check=False,
)
bounds.check(taken.returncode == 1 and taken.stderr.count("\n") == 1, f"a port that is in use: {taken.stderr.strip()}")
bounds.exit()
