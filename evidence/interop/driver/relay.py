"""A relay between a client and a server over UDP: it passes datagrams on, records them, and drops some if asked."""

import select
import socket
import threading

from .message import Message

LOOPBACK = "127.0.0.1"


class Relay:
    """A relay to a loopback port, at a port of its own. `lose` names the side whose first datagram is dropped:
    "client", "server" or nothing."""

    def __init__(self, port, lose=None):
        self.target = (LOOPBACK, port)
        self.losing = lose
        self.front = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.front.bind((LOOPBACK, 0))
        self.port = self.front.getsockname()[1]
        #: The socket towards the server for each address of a client, and the reverse.
        self.up, self.down = {}, {}
        #: The datagrams in order, dropped ones included: the side that sent each, and its bytes.
        self.seen = []
        self.stopping, self.stopped = socket.socketpair()
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stopping.close()
        self.thread.join()
        for end in (self.front, self.stopped, *self.up.values()):
            end.close()

    def work(self):
        while True:
            ready, _, _ = select.select([self.front, self.stopped, *self.up.values()], [], [])
            if self.stopped in ready:
                return
            for end in ready:
                try:
                    data, source = end.recvfrom(65535)
                except ConnectionError:
                    continue  # nobody listens there: the client reports the timeout
                if end is self.front:
                    self.pass_on("client", data, self.upward(source), self.target)
                else:
                    self.pass_on("server", data, self.front, self.down[end])

    def upward(self, source):
        if source not in self.up:
            end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            end.bind((LOOPBACK, 0))
            self.up[source], self.down[end] = end, source
        return self.up[source]

    def pass_on(self, side, data, end, address):
        self.seen.append((side, data))
        if self.losing == side:
            self.losing = None
            return
        try:
            end.sendto(data, address)
        except ConnectionError:
            pass

    def messages(self, side=None):
        """Returns the messages sent by one side, or by both: a list of sides and messages."""
        return [(sender, Message.read(data)) for sender, data in list(self.seen) if side in (None, sender)]
