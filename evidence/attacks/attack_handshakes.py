"""Half-open handshakes of DTLS: 10,000 clients that verify their address and then send nothing more.

The number of handshakes kept is bounded, and a client in between completes its handshake and is served.
"""

import os
import socket
import subprocess
import sys
import time

from loopback import Bounds, Server, hello

HALF = 10_000
bounds, command = Bounds(), sys.argv[1]
server = Server(command, "--demo", "--identity", "lamp", "--key", "secret", "--metrics", "127.0.0.1:0")


def begin(number):
    """Begins a handshake from an address of its own. Returns whether the server asked for a cookie."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.bind((f"127.2.{number >> 8 & 255}.{number & 255}", 0))
        client.settimeout(2)
        client.connect(server.address("coaps"))
        random = os.urandom(32)
        client.send(hello(random, 0, b""))
        try:
            asked = client.recv(2_048)
        except OSError:
            return False
        client.send(hello(random, 1, asked[28:28 + asked[27]]))
        return True


def served():
    """Returns the time in seconds of a whole handshake and a GET."""
    begun = time.monotonic()
    uri = f"coaps://127.0.0.1:{server.uris['coaps']}/counter"
    got = subprocess.run([command, "get", uri, "--identity", "lamp", "--key", "secret"], capture_output=True, timeout=30, check=False)
    return time.monotonic() - begun if got.returncode == 0 else float("inf")


before = server.memory()
asked = sum(begin(number) for number in range(HALF // 2))
between = served()
asked += sum(begin(number) for number in range(HALF // 2, HALF))
grown = server.peak() - before
sessions = server.metric("coap_sessions")
bounds.check(asked >= HALF * 0.99, f"{asked} of {HALF} were asked for a cookie and began")
bounds.check(sessions <= 3_000, f"{sessions:.0f} of them are kept (at most 3000)")
bounds.check(grown <= 40, f"which takes {grown:.1f} MiB (at most 40)")
bounds.check(between <= 10, f"a client between them is served after {1000 * between:.0f} ms (at most 10 s)")
time.sleep(1)
bounds.check(served() <= 10, "and one after them")
bounds.exit()
