"""Incomplete requests for the metrics: 64 connections that begin an HTTP request and do not end it.

A complete request for the metrics is answered, because the connection that has waited for longest is closed.
"""

import socket
import sys
import time

from loopback import Bounds, Server

bounds, command = Bounds(), sys.argv[1]
server = Server(command, "--demo", "--metrics", "127.0.0.1:0")
halves = []
for _ in range(64):
    half = socket.create_connection(server.address("http"), 10)
    half.sendall(b"GET /metrics HT")
    halves.append(half)
waits = []
for _ in range(10):
    begun = time.monotonic()
    try:
        server.metric("coap_observers")
        waits.append(time.monotonic() - begun)
    except OSError:
        waits.append(float("inf"))
bounds.check(max(waits) <= 3, f"beside 64 half requests, metrics after {1000 * max(waits):.0f} ms (at most 3 s)")
bounds.exit()
