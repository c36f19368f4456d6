"""A server that stops: for 30 s under 100 clients, and for ever, with every mechanism.

No mechanism loses more requests than `default`, nor sends a dead peer more datagrams in any 44.5 s.
"""

import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time

from loopback import ACK, Bounds, Message, Server, path, request

CLIENTS, OUTAGE, LOAD = 100, 30, 130
WINDOW, SILENCE = 44.5, 200  # MAX_TRANSMIT_SPAN is 45 s; a busy machine may be late by half a second
CONTENT = 0x45
bounds, command = Bounds(), sys.argv[1]


def mechanisms():
    """Returns the names that `--cc` takes."""
    listed = subprocess.run([command, "list", "mechanisms"], capture_output=True, text=True, check=True).stdout
    table = [line.split() for line in listed.split("\n\n")[0].splitlines()[1:]]
    return [name for name, state_bytes, *_ in table if state_bytes != "-"]  # without TCP, which has its own control


def load(name, port, seconds, *arguments):
    """Runs clients for this long."""
    return subprocess.Popen(
        [command, "load", f"coap://127.0.0.1:{port}/counter", "--cc", name, "--duration", str(seconds),
         "--json", "--quiet", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )


class Mortal:
    """A peer that answers until it dies, and records the times of arriving datagrams."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.came = []

    def port(self):
        return self.socket.getsockname()[1]

    def take(self, dead):
        datagram, source = self.socket.recvfrom(2_048)
        if dead:
            self.came.append(time.monotonic())
            return
        message = Message(datagram)
        self.socket.sendto(request(CONTENT, message.number, message.token, [], b"1", ACK), source)

    def most(self):
        """Returns the most datagrams that arrived in any 45 s."""
        return max((sum(0 <= other - first < WINDOW for other in self.came) for first in self.came), default=0)


names = mechanisms()
begun = time.monotonic()
server = Server(command, "--demo")
peers = {name: Mortal() for name in names}
stopped = {
    name: load(name, server.uris["coap"], LOAD, "--clients", str(CLIENTS), "--rate", str(CLIENTS / 2)) for name in names
}
dead = {name: load(name, peer.port(), SILENCE, "--clients", "1", "--rate", "5") for name, peer in peers.items()}
states = iter([(5, signal.SIGSTOP), (5 + OUTAGE, signal.SIGCONT)])
after, what = next(states)
while (now := time.monotonic() - begun) < SILENCE:
    if what is not None and now >= after:
        os.kill(server.process.pid, what)
        after, what = next(states, (0, None))
    for readable in select.select([peer.socket for peer in peers.values()], [], [], 0.1)[0]:
        next(peer for peer in peers.values() if peer.socket is readable).take(now > 5)

lost = {}
for name, process in stopped.items():
    result = json.loads(process.communicate()[0])
    lost[name], waiting = result["failed"], result["unfinished"]
    asked = result["answered"] + lost[name] + waiting
    bounds.check(
        lost[name] <= lost["default"],
        f"stopped for {OUTAGE} s, {CLIENTS} clients, {name}: {lost[name]} of {asked} requests lost "
        f"(at most {lost['default']}, as default), {waiting} still waiting {LOAD - OUTAGE - 5} s later",
    )
for name, process in dead.items():
    process.terminate()
    most, bound = peers[name].most(), peers["default"].most()
    bounds.check(
        0 < most <= bound,
        f"dead peer, {name}: {most} datagrams in any {WINDOW} s, {len(peers[name].came)} in all (at most {bound}, as default)",
    )
bounds.exit()
