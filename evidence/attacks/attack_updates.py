"""Lost updates: eight clients change one file under If-Match, and create names under If-None-Match, over UDP, TCP and WebSockets at once.

Each client reads a counter with its ETag and writes the next number with If-Match, 10,000 rounds in all. Afterwards the
counter has to equal the number of successes. Then all try to create 500 names with If-None-Match, and each name has to be
created once.
"""

import base64
import os
import pathlib
import socket
import struct
import sys
import threading

from loopback import CSM, GET, PUT, Bounds, Client, Server, directory, options, over_tcp, path

CLIENTS, ROUNDS, NAMES = 8, 10_000, 500
IF_MATCH, ETAG, IF_NONE_MATCH = 1, 4, 5


class Stream:
    """A client over a connection that has one request under way at a time."""

    def __init__(self, to):
        self.connection = socket.create_connection(to, 30)
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.rest = b""
        self.greet()

    def greet(self):
        self.connection.sendall(CSM)

    def send(self, code, pairs, payload):
        self.connection.sendall(over_tcp(code, b"x", pairs, payload))

    def take(self, count):
        while len(self.rest) < count:
            more = self.connection.recv(65_536)
            if not more:
                raise ConnectionError("the server has closed")
            self.rest += more
        taken, self.rest = self.rest[:count], self.rest[count:]
        return taken

    def message(self):
        """Returns code, and options with payload, of the next message."""
        first = self.take(1)[0]
        length = first >> 4
        if length == 13:
            length = 13 + self.take(1)[0]
        elif length == 14:
            length = 269 + struct.unpack("!H", self.take(2))[0]
        code = self.take(1)[0]
        self.take(first & 15)
        return code, self.take(length)

    def ask(self, code, pairs, payload=b""):
        self.send(code, pairs, payload)
        while True:
            answered, tail = self.message()
            if answered >> 5 != 7:
                return answered, read(tail)


class WebSocket(Stream):
    def greet(self):
        nonce = base64.b64encode(os.urandom(16)).decode()
        self.connection.sendall(
            "GET /.well-known/coap HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {nonce}\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: coap\r\n\r\n".encode()
        )
        while not self.rest.endswith(b"\r\n\r\n"):
            self.rest += self.connection.recv(1)
        self.rest = b""
        self.frame(bytes.fromhex("00e1"))

    def frame(self, message):
        length = bytes([0x80 | len(message)]) if len(message) < 126 else struct.pack("!BH", 0xfe, len(message))
        self.connection.sendall(b"\x82" + length + bytes(4) + message)

    def send(self, code, pairs, payload):
        body = options(*pairs) + (b"\xff" + payload if payload else b"")
        self.frame(bytes([1, code]) + b"x" + body)

    def message(self):
        length = self.take(2)[1] & 127
        if length == 126:
            length = struct.unpack("!H", self.take(2))[0]
        message = self.take(length)
        return message[1], message[2 + (message[0] & 15):]


class Datagrams:
    def __init__(self, to):
        self.client = Client(to)

    def ask(self, code, pairs, payload=b""):
        answer = self.client.ask(code, pairs, payload, seconds=60, timeout=5)
        if answer is None:
            raise ConnectionError("no answer")
        return answer.code, (answer.option(ETAG), answer.payload)


def read(tail):
    """Returns the ETag in the options, and the payload after them."""
    number, etag = 0, None
    while tail and tail[0] != 0xff:
        parts, tail = [tail[0] >> 4, tail[0] & 15], tail[1:]
        for place, part in enumerate(parts):
            if part == 13:
                parts[place], tail = 13 + tail[0], tail[1:]
            elif part == 14:
                parts[place], tail = 269 + struct.unpack("!H", tail[:2])[0], tail[2:]
        number += parts[0]
        etag = tail[:parts[1]] if number == ETAG else etag
        tail = tail[parts[1]:]
    return etag, tail[1:]


def at_once(work):
    """Runs `work` with the number of each client. Returns the results, and the clients that failed."""
    results = [None] * CLIENTS

    def one(number):
        results[number] = work(number)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


bounds, command = Bounds(), sys.argv[1]
place = directory()
(pathlib.Path(place) / "count").write_text("1000000", encoding="ascii")
server = Server(command, "--directory", place, "--writable", "--max-writes", "100000/100000", "--tcp", "127.0.0.1:0", "--ws", "127.0.0.1:0")
KINDS = [("coap", Datagrams), ("coap+tcp", Stream), ("coap+ws", WebSocket)]


def client(number):
    scheme, kind = KINDS[number % len(KINDS)]
    return kind(server.address(scheme))


def update(number):
    asks, done = client(number), 0
    for _ in range(ROUNDS // CLIENTS):
        _, (etag, text) = asks.ask(GET, path("count"))
        code, _ = asks.ask(PUT, [(IF_MATCH, etag)] + path("count"), str(int(text) + 1).encode())
        done += code == 0x44
    return done


def create(number):
    asks, created = client(number), []
    for name in range(NAMES):
        together.wait(60)
        code, _ = asks.ask(PUT, [(IF_NONE_MATCH, b"")] + path(f"name{name}"), b"mine")
        created.append(code == 0x41)
    return created


done = at_once(update)
finished = sum(done) if None not in done else -1
count = int((pathlib.Path(place) / "count").read_text(encoding="ascii")) - 1_000_000
bounds.check(finished == count, f"If-Match: {finished} successes in {ROUNDS} rounds, counted to {count} (the same)")
together = threading.Barrier(CLIENTS)
made = at_once(create)
several = sum(sum(each) > 1 for each in zip(*made)) if None not in made else NAMES
once = sum(sum(each) == 1 for each in zip(*made)) if None not in made else 0
bounds.check(several == 0 and once == NAMES, f"If-None-Match: {once} of {NAMES} names created once, {several} more often (0)")
bounds.exit()
