"""Answers that nobody reads: requests without pause over TCP, TLS and WebSockets, whose answers are never read.

A client announces that it takes messages of any size, asks 1024 times for a file of 8 MiB, and reads nothing. Then 100
clients ask 1024 times each for a file of 64 KiB. The memory of the server grows no more than the budget of its connections
allows, and another client is answered meanwhile.
"""

import base64
import os
import socket
import ssl
import struct
import subprocess
import sys
import time

from loopback import CSM, GET, Bounds, Client, Server, connected, directory, over_tcp, path

bounds, command = Bounds(), sys.argv[1]
place = directory(f=8 << 20, g=64 << 10)
key, certificate = os.path.join(place, ".key"), os.path.join(place, ".cert")
made = subprocess.run(
    ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
     "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate],
    capture_output=True, check=False,
).returncode == 0
BUDGET = 96  # MiB for one client, in addition to the server's own
ALL = 320  # MiB for a hundred clients


def sealed(to):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["coap"])
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    plain.settimeout(10)
    plain.connect(to)
    connection = context.wrap_socket(plain, server_hostname="localhost")
    connection.sendall(CSM)
    return connection


def upgraded(to):
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    connection.settimeout(10)
    connection.connect(to)
    nonce = base64.b64encode(os.urandom(16)).decode()
    connection.sendall(
        "GET /.well-known/coap HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Key: {nonce}\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: coap\r\n\r\n".encode()
    )
    while b"\r\n\r\n" not in connection.recv(1_024):
        pass
    connection.sendall(frame(bytes.fromhex("00e124ffffffff20")))
    return connection


def frame(message):
    """Returns a binary frame with a mask that changes nothing (RFC 6455 §5.2)."""
    return struct.pack("!BB4x", 0x82, 0x80 | len(message)) + message


def attack(scheme, count, name):
    """Returns the memory in MiB that `count` clients make a server use, and the time another client waited
    meanwhile."""
    arguments = ["--directory", place, "--tcp", "127.0.0.1:0", "--ws", "127.0.0.1:0"]
    if made:
        arguments += ["--tls", "127.0.0.1:0", "--cert", certificate, "--private-key", key]
    server = Server(command, *arguments)
    before = server.memory()
    ask = {"coap+tcp": connected, "coaps+tcp": sealed, "coap+ws": upgraded}[scheme]
    one = over_tcp(GET, b"", path(name))
    requests = frame(b"\x00" + one[1:]) * 1_024 if scheme == "coap+ws" else one * 1_024
    connections = []
    for _ in range(count):
        connection = ask(server.address(scheme))
        connection.settimeout(0.2)
        try:
            connection.sendall(requests)
        except TimeoutError:
            pass  # the server reads no request that it would not answer
        connections.append(connection)
    end = time.monotonic() + 8
    while time.monotonic() < end and server.lives() and server.memory() - before < 2_000:
        time.sleep(0.2)
    grown = server.peak() - before
    begun = time.monotonic()
    answer = Client(server.address()).ask(GET, path("g?"), seconds=10) if server.lives() else None
    waited = time.monotonic() - begun if answer else float("inf")
    for connection in connections:
        connection.close()
    server.stop()
    return grown, waited


for scheme in ("coap+tcp", "coaps+tcp", "coap+ws"):
    if scheme == "coaps+tcp" and not made:
        print("   coaps+tcp is left out: openssl is not there to make a certificate")
        continue
    grown, waited = attack(scheme, 1, "f")
    bounds.check(grown <= BUDGET, f"{scheme}, 1 client, 1024 × 8 MiB: {grown:.0f} MiB (at most {BUDGET})")
    grown, waited = attack(scheme, 100, "g")
    bounds.check(grown <= ALL, f"{scheme}, 100 clients, 1024 × 64 KiB each: {grown:.0f} MiB (at most {ALL})")
    bounds.check(waited <= 5, f"{scheme}, another client over UDP waited {1000 * waited:.0f} ms (at most 5 s)")
bounds.exit()
