"""Waiting handlers: 6000 forged requests for a response an hour later, and GETs of a file meanwhile.

The waiting handlers of one resource leave room for other requests: 20 of 20 files are served.
"""

import sys

from loopback import GET, Addresses, Bounds, Client, Server, directory, path, request

bounds, command = Bounds(), sys.argv[1]
server = Server(command, "--demo", "--directory", directory(f=500))
forged = Addresses()
for source in range(6_000):
    forged.send(source, request(GET, source & 0xffff, b"", path("delayed?s=3600")), server.address())
    if source % 100 == 0:
        forged.drop()
answers = [Client(server.address()).ask(GET, path("f")) for _ in range(20)]
good = sum(answer is not None and answer.code == 0x45 for answer in answers)
bounds.check(good == 20, f"beside 6000 requests that wait, {good} of 20 files (20)")
answer = Client(server.address()).ask(GET, path("delayed?s=1"))
bounds.check(answer is not None and answer.code == 0x45, "a client that shows its address gets a response that takes long")
bounds.exit()
