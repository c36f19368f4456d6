"""Code shared by the attacks: a server to attack, CoAP messages, and loopback addresses to send from."""

import atexit
import os
import pathlib
import random
import re
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

GET, POST, PUT = 1, 2, 3
OBSERVE, URI_PATH, URI_QUERY, BLOCK1, ECHO = 6, 11, 15, 27, 252
CON, NON, ACK, RST = 0, 1, 2, 3
SKIPPED = 77

# A shell sets SIGINT to be ignored in background jobs, and every process started there inherits that.
signal.signal(signal.SIGINT, signal.default_int_handler)


def skip(why):
    """Ends an attack that cannot run on this machine."""
    print(f"   skipped: {why}")
    sys.exit(SKIPPED)


class Bounds:
    """The values of an attack, and whether they are within their bounds."""

    def __init__(self):
        self.broken = False

    def check(self, holds, text):
        """Prints a value together with its bound, and records whether it is within it."""
        print(f"   {'held  ' if holds else 'BROKEN'} {text}", flush=True)
        self.broken |= not holds

    def exit(self):
        sys.exit(1 if self.broken else 0)


class Server:
    """A `coapace serve` with two threads, at ports that the system chooses."""

    def __init__(self, command, *arguments):
        self.uris = {}
        self.process = subprocess.Popen(
            [command, "serve", "--bind", "127.0.0.1:0", "--threads", "2", *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )
        atexit.register(self.stop)
        flags = ("--tcp", "--tls", "--ws", "--wss", "--dtls", "--metrics")
        expected = 1 + sum(flag in arguments for flag in flags)
        if "--identity" in arguments and "--dtls" not in arguments:
            expected += 1
        for _ in range(expected):
            line = self.process.stdout.readline().strip()
            matched = re.match(r"([a-z+]+)://127\.0\.0\.1:(\d+)", line)
            if matched is None:
                sys.exit(f"   the server said {line!r}, and no URI of loopback")
            self.uris[matched[1]] = int(matched[2])

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.process.kill()

    def lives(self):
        return self.process.poll() is None

    def address(self, scheme="coap"):
        return ("127.0.0.1", self.uris[scheme])

    def memory(self):
        """Returns the resident memory in MiB."""
        return self._status("VmRSS")

    def peak(self):
        """Returns the peak of the resident memory in MiB."""
        return self._status("VmHWM")

    def _status(self, name):
        try:
            status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
            return int(re.search(rf"{name}:\s+(\d+) kB", status)[1]) / 1024
        except (OSError, TypeError):
            return float("inf")

    def cpu(self):
        """Returns the seconds of CPU used."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def metric(self, name):
        """Returns the sum of a metric over its labels."""
        with socket.create_connection(self.address("http"), 10) as connection:
            connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
            text = b"".join(iter(lambda: connection.recv(65_536), b"")).decode()
        values = re.findall(rf"^{name}(?:{{[^}}]*}})? ([0-9.e+]+)$", text, re.MULTILINE)
        return sum(map(float, values))


class Relay(Server):
    """A `coapace relay` with counters, in front of an address."""

    def __init__(self, command, to, *arguments, port=0, limit=None):
        bound = (lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))) if limit else None
        words = [command, "relay", "--listen", f"127.0.0.1:{port}", "--to", f"{to[0]}:{to[1]}", "--cc", "fasor",
                 "--metrics", "127.0.0.1:0", *arguments]
        # preexec_fn is safe here: this program has no other thread when it starts a relay with a limit.
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=bound)
        atexit.register(self.stop)
        lines = [self.process.stdout.readline().strip() for _ in range(2)]
        if not all(lines):
            sys.exit(f"   the relay said {self.process.stderr.read()!r}")
        self.uris = {line.partition(":")[0]: int(line.removesuffix("/metrics").rpartition(":")[2]) for line in lines}
        self.log = []
        threading.Thread(target=lambda: self.log.extend(self.process.stderr), daemon=True).start()

    def end(self):
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(10)


def directory(**files):
    """Creates a directory with files of these sizes in bytes. It is removed at the end."""
    place = tempfile.TemporaryDirectory(prefix="coapace-attack-")
    atexit.register(place.cleanup)
    for name, size in files.items():
        (pathlib.Path(place.name) / name).write_bytes(os.urandom(min(size, 4_096)) * (size // 4_096 or 1))
    return place.name


def option(before, number, value):
    """Returns an option that follows one with the number `before` (RFC 7252 §3.1)."""
    def part(n):
        return (n, b"") if n < 13 else (13, bytes([n - 13])) if n < 269 else (14, struct.pack("!H", n - 269))
    (delta, more), (length, longer) = part(number - before), part(len(value))
    return bytes([delta << 4 | length]) + more + longer + value


def options(*pairs):
    encoded, before = b"", 0
    for number, value in sorted(pairs, key=lambda pair: pair[0]):
        encoded += option(before, number, value)
        before = number
    return encoded


def path(text):
    """Returns the options of a path with a query."""
    where, _, query = text.partition("?")
    segments = [(URI_PATH, segment.encode()) for segment in where.strip("/").split("/")]
    return segments + [(URI_QUERY, argument.encode()) for argument in query.split("&") if argument]


def request(code, number, token, pairs, payload=b"", kind=CON):
    """Returns a datagram (RFC 7252 §3)."""
    head = struct.pack("!BBH", 0x40 | kind << 4 | len(token), code, number) + token
    return head + options(*pairs) + (b"\xff" + payload if payload else b"")


def malformed():
    """Returns bytes that are no CoAP message, or hardly one."""
    kind = random.randrange(4)
    if kind == 0:
        return os.urandom(random.randrange(1, 80))
    message = bytearray(request(GET, random.randrange(65_536), os.urandom(random.randrange(9)), path("time/now?x")))
    if kind == 1:
        return bytes(message[:random.randrange(1, len(message))])
    message[random.randrange(len(message))] ^= 1 << random.randrange(8)
    if kind == 2:
        return bytes(message) + os.urandom(random.randrange(8))
    return bytes([64 | random.randrange(64), random.randrange(256)]) + bytes(message[2:])


def hello(nonce, message, cookie):
    """Returns a ClientHello of DTLS 1.2 with TLS_PSK_WITH_AES_128_CCM_8 and the extended master secret (RFC 6347 §4.2.2)."""
    body = b"\xfe\xfd" + nonce + b"\0" + bytes([len(cookie)]) + cookie + b"\0\x02\xc0\xa8\x01\0" + b"\0\x04\0\x17\0\0"
    length = struct.pack("!I", len(body))[1:]
    handshake = b"\x01" + length + struct.pack("!H", message) + b"\0\0\0" + length + body
    return b"\x16\xfe\xfd\0\0" + struct.pack("!HI", 0, message) + struct.pack("!H", len(handshake)) + handshake


class Message:
    """A received datagram."""

    def __init__(self, datagram):
        self.kind, length = datagram[0] >> 4 & 3, datagram[0] & 15
        self.code, self.number = datagram[1], struct.unpack("!H", datagram[2:4])[0]
        self.token, self.options, rest, number = datagram[4:4 + length], [], datagram[4 + length:], 0
        while rest and rest[0] != 0xff:
            parts, rest = [rest[0] >> 4, rest[0] & 15], rest[1:]
            for place, part in enumerate(parts):
                if part == 13:
                    parts[place], rest = 13 + rest[0], rest[1:]
                elif part == 14:
                    parts[place], rest = 269 + struct.unpack("!H", rest[:2])[0], rest[2:]
            number += parts[0]
            self.options.append((number, rest[:parts[1]]))
            rest = rest[parts[1]:]
        self.payload = rest[1:]

    def option(self, number):
        return next((value for other, value in self.options if other == number), None)


class Addresses:
    """One UDP socket that sends from any address of 127.0.0.0/8, and knows which of them a datagram was sent to."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.IPPROTO_IP, 8, 1)  # IP_PKTINFO
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self.socket.bind(("0.0.0.0", 0))
        self.socket.setblocking(False)

    def send(self, source, datagram, to):
        """Sends from an address, given as a number: 0 is 127.1.0.0."""
        info = struct.pack("=I4s4s", 0, numbered(source), b"\0\0\0\0")
        while True:
            try:
                self.socket.sendmsg([datagram], [(socket.IPPROTO_IP, 8, info)], 0, to)
                return
            except BlockingIOError:
                select.select([], [self.socket], [], 1)

    def receive(self, seconds):
        """Returns the next datagram and the number of the address that it was sent to; None if none arrives in time."""
        if not select.select([self.socket], [], [], seconds)[0]:
            return None
        datagram, control, _, _ = self.socket.recvmsg(2_048, 64)
        address = next(data[8:12] for level, kind, data in control if (level, kind) == (socket.IPPROTO_IP, 8))
        return struct.unpack("!I", address)[0] - 0x7f010000, datagram

    def drop(self):
        """Discards the datagrams that have arrived."""
        while self.receive(0) is not None:
            pass


def numbered(source):
    return struct.pack("!I", 0x7f010000 + source)


def flood(to, sent, code, text):
    """Sends requests with changing Message IDs and tokens from 64 addresses, until it is ended. `sent` counts them."""
    sockets = []
    for number in range(64):
        forged = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        forged.bind((f"127.3.0.{number + 1}", 0))
        forged.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        forged.connect(to)
        sockets.append(forged)
    tail = request(code, 0, b"", path(text))[4:]
    while True:
        number = sent.value
        sockets[number % 64].send(struct.pack("!BBHI", 0x44, code, number >> 6 & 0xffff, number) + tail)
        sent.value += 1


class Client:
    """A client with its own address that follows the protocol: it retransmits, acknowledges, and answers Echo."""

    def __init__(self, to, host="127.0.0.1"):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((host, 0))
        self.to, self.number, self.notified = to, int.from_bytes(os.urandom(2), "big"), []

    def ask(self, code, pairs, payload=b"", seconds=5, timeout=1):
        """Returns the response to a request; None without one. Repeats the request with the Echo value if the server
        asks for it."""
        for _ in range(2):
            answer = self.exchange(code, pairs, payload, seconds, timeout)
            if answer is None or answer.code != 0x81 or answer.option(ECHO) is None:
                return answer
            pairs = [pair for pair in pairs if pair[0] != ECHO] + [(ECHO, answer.option(ECHO))]
        return answer

    def exchange(self, code, pairs, payload=b"", seconds=5, timeout=1):
        self.number = self.number + 1 & 0xffff
        token = struct.pack("!HH", self.number, os.getpid() & 0xffff)
        datagram = request(code, self.number, token, pairs, payload)
        end, again = time.monotonic() + seconds, time.monotonic()
        while (now := time.monotonic()) < end:
            if now >= again:
                self.socket.sendto(datagram, self.to)
                again = now + timeout
            message = self.receive(min(again, end) - now)
            if message is not None and message.token == token and message.code:
                return message
        return None

    def receive(self, seconds):
        """Returns the next message and acknowledges it; None if none arrives."""
        self.socket.settimeout(max(seconds, 0.001))
        try:
            message = Message(self.socket.recv(4_096))
        except (TimeoutError, ConnectionError):
            return None
        if message.kind == CON:
            self.socket.sendto(struct.pack("!BBH", 0x40 | ACK << 4, 0, message.number), self.to)
        return message


CSM = bytes.fromhex("60e124ffffffff20")  # accepts messages of up to 2^32 - 1 bytes and block-wise transfers


def connected(to, seconds=10):
    """A connection over TCP (RFC 8323) after the exchange of CSMs, with a small receive buffer."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    connection.settimeout(seconds)
    connection.connect(to)
    connection.sendall(CSM)
    return connection


def over_tcp(code, token, pairs, payload=b""):
    """Returns a message over TCP (RFC 8323 §3.2)."""
    body = options(*pairs) + (b"\xff" + payload if payload else b"")
    length = len(body)
    if length < 13:
        head, more = length, b""
    elif length < 269:
        head, more = 13, bytes([length - 13])
    else:
        head, more = 14, struct.pack("!H", length - 269)
    return bytes([head << 4 | len(token)]) + more + bytes([code]) + token + body
