"""Message IDs: 70,000 requests of one client to a server that remembers each Message ID of each port.

RFC 7252 §4.4: a Message ID must not be used again towards one endpoint within EXCHANGE_LIFETIME, 247 s.
"""

import socket
import subprocess
import sys

from loopback import Bounds

REQUESTS = 70_000

bounds, command = Bounds(), sys.argv[1]
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 0))
server.settimeout(20)
uri = f"coap://127.0.0.1:{server.getsockname()[1]}/x"
client = subprocess.Popen(
    [command, "get", uri, "--repeat", str(REQUESTS), "--quiet"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
)
known, ports, again, answered = set(), set(), 0, 0
try:
    while answered < REQUESTS:
        request, source = server.recvfrom(2_048)
        name, token = (source[1], request[2:4]), request[4:4 + (request[0] & 15)]
        # A retransmission repeats the token, another request does not.
        if (*name, token) not in known:
            again += name in known
            known |= {name, (*name, token)}
            answered += 1
        ports.add(source[1])
        server.sendto(bytes([0x60 | len(token), 0x45]) + request[2:4] + token + b"\xffx", source)
except TimeoutError:
    pass
try:
    client.wait(20)
except subprocess.TimeoutExpired:
    client.kill()
bounds.check(
    client.returncode == 0 and answered == REQUESTS and again == 0,
    f"{answered} of {REQUESTS} requests from {len(ports)} ports: {again} Message IDs came back (0)",
)
bounds.exit()
