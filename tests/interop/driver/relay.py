"""What stands between a client and a server over UDP: it passes datagrams on, keeps what it saw, and loses some if asked."""

import select
import socket
import threading

from .message import Message

LOOPBACK = "127.0.0.1"


class Relay:
    """A relay to a port of loopback, at a port of its own. `lose` says of which side the first datagram is lost: "client",
    "server" or nothing."""

    def __init__(self, port, lose=None):
        self.target = (LOOPBACK, port)
        self.losing = lose
        self.front = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.front.bind((LOOPBACK, 0))
        self.port = self.front.getsockname()[1]
        #: The socket towards the server for each address of a client, and back.
        self.up, self.down = {}, {}
        #: What passed or was lost, in order: the side that sent it, and its bytes.
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
                    continue  # nobody listens there: the client's timeout says so
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
        """What was sent by one side, or by both: a list of sides and messages."""
        return [(sender, Message.read(data)) for sender, data in list(self.seen) if side in (None, sender)]
