"""What aiocoap's tests take from their own module `common`: how to start programs, and what this machine has."""

import asyncio
import os
import socket
import sys

from aiocoap import defaults

os.environ["AIOCOAP_DTLSSERVER_ENABLED"] = "1"

PYTHON_PREFIX = [sys.executable]
in_woodpecker = False
using_simple6 = "simple6" in list(defaults.get_default_clienttransports())
tcp_disabled = ws_disabled = dtls_disabled = False


def _resolves(name, family, address):
    try:
        return any(found[4][0] == address for found in socket.getaddrinfo(name, 5683, family))
    except OSError:
        return False


def _loopback(four, six):
    """Return a name of this machine that has an address of exactly these families, or None."""
    for name in ("localhost", "ip6-localhost", "ip6-loopback"):
        has = _resolves(name, socket.AF_INET, "127.0.0.1"), _resolves(name, socket.AF_UNSPEC, "::1")
        if has == (four, six):
            return name
    return None


loopbackname_v4, loopbackname_v6, loopbackname_v46 = _loopback(True, False), _loopback(False, True), _loopback(True, True)


class CapturingSubprocess(asyncio.SubprocessProtocol):
    """Keeps what a program prints. `read_more` is done with the next output, and with its end."""

    def __init__(self):
        self.stdout = self.stderr = b""
        self._renew()

    def _renew(self):
        self.read_more = asyncio.get_running_loop().create_future()

    def pipe_data_received(self, fd, data):
        name = "stdout" if fd == 1 else "stderr"
        setattr(self, name, getattr(self, name) + data)
        self.read_more.set_result(None)
        self._renew()

    def process_exited(self):
        self.read_more.set_result(None)


def run_fixture_as_standalone_server(fixture):
    raise SystemExit(f"{fixture.__name__} is run by the tests")
