"""Silent connections: 1300 over TCP that send nothing, then as many that send only a CSM.

Each address that connects after them is answered at once, over TCP and over UDP with a file: the connection that was
silent for longest is closed, and descriptors are kept free for files.
"""

import resource
import socket
import sys
import time

from loopback import CSM, GET, Bounds, Client, Server, connected, directory, over_tcp, path

SILENT = 1_300
bounds, command = Bounds(), sys.argv[1]
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
# The server inherits 1024, like from a login shell; this process needs more.
resource.setrlimit(resource.RLIMIT_NOFILE, (1_024, hard))
server = Server(command, "--directory", directory(f=1_000), "--tcp", "127.0.0.1:0", "--demo")
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8_192), hard))


def asked():
    """Returns the time in seconds until a new connection is answered."""
    begun = time.monotonic()
    try:
        with connected(server.address("coap+tcp"), 5) as connection:
            connection.sendall(over_tcp(GET, b"\x07", path("f")))
            received = b""
            while len(received) < 1_000:
                more = connection.recv(4_096)
                if not more:
                    return float("inf")
                received += more
    except OSError:
        return float("inf")
    return time.monotonic() - begun


for what, first in (("that say nothing", b""), ("that sent a CSM", CSM)):
    silent = []
    for _ in range(SILENT):
        connection = socket.create_connection(server.address("coap+tcp"), 10)
        if first:
            connection.sendall(first)
        silent.append(connection)
    time.sleep(1)
    waits = [asked() for _ in range(20)]
    bounds.check(max(waits) <= 5, f"beside {SILENT} connections {what}, a new one waits {1000 * max(waits):.0f} ms (at most 5 s)")
    answers = [Client(server.address()).ask(GET, path("f")) for _ in range(20)]
    good = sum(answer is not None and answer.code == 0x45 for answer in answers)
    bounds.check(good == 20, f"beside these, {good} of 20 files over UDP (20)")
    for connection in silent:
        connection.close()
    time.sleep(1)
bounds.check(server.lives(), "the server lives")
bounds.exit()
