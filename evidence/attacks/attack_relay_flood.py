"""32 forged sources that fill a relay's queue, while honest clients ask through it.

The answers of the server take 5 s, so what the sources ask for waits: 4096 requests, if they could have all. A source has a
sixteenth of what is left at most.
"""

import sys
import threading
import time

from loopback import GET, Addresses, Bounds, Client, Relay, Server, path, request

SOURCES, HONEST = 32, 60
bounds, command = Bounds(), sys.argv[1]
server = Server(command, "--demo")
for trust in ("loopback", "none"):
    relay = Relay(command, server.address(), "--trust", trust)
    forged, ended = Addresses(), threading.Event()

    def flood():
        """Sends 2,000 requests a second until 12,800 are sent, and then 300 a second: 12 kB/s."""
        number = 0
        while not ended.is_set():
            datagram = request(GET, number // SOURCES & 0xffff, number.to_bytes(4, "big"), path("delayed?s=5"))
            forged.send(number % SOURCES, datagram, relay.address())
            forged.drop()
            number += 1
            time.sleep(0.0005 if number < 12_800 else 0.0033)

    flooder = threading.Thread(target=flood)
    flooder.start()
    time.sleep(8)
    codes = []
    for number in range(HONEST):
        client = Client(relay.address(), f"127.9.1.{number + 1}")
        answer = client.ask(GET, path(".well-known/core"), seconds=10)
        codes.append(None if answer is None else answer.code)
    ended.set()
    flooder.join()
    served = codes.count(0x45)
    refused, asked = relay.metric("coap_relay_refused_total"), relay.metric("coap_relay_requests_total")
    bounds.check(served == HONEST, f"--trust {trust}: {served} of {HONEST} honest requests are answered ({HONEST}), {codes.count(0xa3)} with 5.03 (0);"
                 f" {refused:.0f} of {asked:.0f} requests were refused")
    relay.end()
bounds.exit()
