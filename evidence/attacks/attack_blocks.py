"""Block-wise reading: a file of 8 MiB in blocks of 1024 bytes, by one client and by sixteen at once, a flood of last blocks, and a thousand clients.

The cost of a block must not depend on the size of the file, and a thousand transfers at once take the server no more memory than it may use.
"""

import json
import os
import pathlib
import subprocess
import sys
import time

from loopback import GET, Bounds, Client, Server, directory, path

SIZE, CLIENTS = 8 << 20, 16
MANY, SMALLER, MEMORY = 1_000, 128 << 10, 64  # clients, bytes, MiB
BLOCK2 = 23

bounds, command = Bounds(), sys.argv[1]
place = directory()
(pathlib.Path(place) / "f").write_bytes(os.urandom(SIZE))
server = Server(command, "--directory", place)
uri = f"coap://127.0.0.1:{server.uris['coap']}/f"


def fetch(number):
    return subprocess.Popen([command, "get", uri, "-o", os.path.join(place, f".got{number}"), "--quiet"])


def timed(count):
    """Returns seconds, CPU seconds of the server, and the number of clients that have the file."""
    begun, used = time.monotonic(), server.cpu()
    clients = [fetch(number) for number in range(count)]
    end = begun + 90
    whole = 0
    for number, client in enumerate(clients):
        try:
            client.wait(max(0, end - time.monotonic()))
            got = pathlib.Path(place) / f".got{number}"
            whole += client.returncode == 0 and got.read_bytes() == (pathlib.Path(place) / "f").read_bytes()
        except subprocess.TimeoutExpired:
            client.kill()
    return time.monotonic() - begun, server.cpu() - used, whole


seconds, cpu, whole = timed(1)
bounds.check(whole == 1 and cpu <= 3, f"8 MiB by one client: {seconds:.2f} s, {cpu:.2f} s of the server's CPU (at most 3)")
seconds, cpu, whole = timed(CLIENTS)
bounds.check(whole == CLIENTS, f"8 MiB by {CLIENTS} clients: {whole} done in {seconds:.1f} s (all, within 90), {cpu:.2f} s of CPU")
asks = Client(server.address())
used, count = server.cpu(), 1_000
last = (SIZE >> 10) - 1
for _ in range(count):
    asks.ask(GET, path("f") + [(BLOCK2, (last << 4 | 6).to_bytes(3, "big"))])
each = (server.cpu() - used) / count * 1e6
bounds.check(each <= 1_000, f"the last block alone: {each:.0f} µs of CPU a request (at most 1000)")
server.stop()

(pathlib.Path(place) / "g").write_bytes(os.urandom(SMALLER))
server = Server(command, "--directory", place, "--memory", f"{MEMORY}M")
load = [command, "load", f"coap://127.0.0.1:{server.uris['coap']}/g", "--clients", str(MANY), "--duration", "20", "--json", "--quiet"]
result = json.loads(subprocess.run(load, stdout=subprocess.PIPE, check=False).stdout)
failed, refused = result["failed"], sum(result["codes"].values())
whole = result["answered"] - refused
bounds.check(
    whole >= MANY and failed == 0,
    f"{SMALLER >> 10} KiB by {MANY} clients at once: {whole} transfers in {result['elapsed_s']:.0f} s (at least {MANY}), {refused} refused at first, {failed} failed (0)",
)
bounds.check(server.peak() <= MEMORY, f"and {server.peak():.0f} MiB (at most {MEMORY})")
bounds.exit()
