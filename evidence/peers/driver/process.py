"""Processes: started on a core, given requests, measured, and ended in any case."""

import os
import select
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from .peer import PATH, PAYLOAD, Peer

#: Limits in seconds: for a server's answer to its first request, and for a client's requests.
START_LIMIT, CLIENT_LIMIT = 20, 120


class Failure(Exception):
    """The fault of a stack, in words."""


class Process:
    """A process in a session of its own, so that Ctrl-C reaches the driver only and the driver ends all of it."""

    def __init__(self, words, core, **pipes):
        self.errors = tempfile.TemporaryFile()
        words = ["taskset", "-c", str(core), *words]  # taskset is replaced by the command, so the process ID stays
        pipes.setdefault("stdin", subprocess.DEVNULL)
        pipes.setdefault("stdout", subprocess.DEVNULL)
        # Unbuffered, so nothing is left to write when the pipe of a dead process is closed.
        self.child = subprocess.Popen(words, bufsize=0, stderr=self.errors, start_new_session=True, **pipes)
        self.pid = self.child.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for number, patience in ((signal.SIGTERM, 2), (signal.SIGKILL, 10)):
            try:
                os.killpg(self.pid, number)
            except ProcessLookupError:
                pass  # the group is gone; the child may still wait to be collected
            try:
                self.child.wait(patience)
                break
            except subprocess.TimeoutExpired:
                continue
        for file in (self.child.stdin, self.child.stdout, self.errors):
            if file:
                file.close()

    def cpu_seconds(self):
        """Returns the processor time so far, of all threads, user and kernel: the kernel's clock of the process,
        clock_getcpuclockid(3)."""
        return time.clock_gettime_ns(~self.pid << 3 | 2) / 1e9

    def resident_bytes(self):
        """Returns the resident memory of the process."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) * 1024

    def check(self):
        """Raises Failure if the process has ended."""
        if self.child.poll() is not None:
            self.errors.seek(0)
            words = self.errors.read().decode(errors="replace").strip().splitlines()
            raise Failure(f"ended with status {self.child.returncode}: {words[-1] if words else 'silent'}")


class Client(Process):
    """A stack's client: it reads a number N from standard input, sends N requests and prints the number of answers."""

    def __init__(self, command, port, core):
        super().__init__(Peer.fill(command, port), core, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, count):
        """Makes the client send `count` requests; returns how many were answered."""
        try:
            self.child.stdin.write(f"{count}\n".encode())
        except BrokenPipeError:
            pass  # its end is reported below
        if not select.select([self.child.stdout], [], [], CLIENT_LIMIT)[0]:
            raise Failure(f"the client did not make {count} requests in {CLIENT_LIMIT} s")
        line = self.child.stdout.readline()
        if not line:
            self.child.wait(5)
            self.check()
        return int(line)


class Server(Process):
    """A stack's server, ready once it has answered a request correctly."""

    def __init__(self, peer, cores, generator):
        self.port = free_port()
        self.cores, self.generator = cores, generator
        super().__init__(Peer.fill(peer.server, self.port), cores[0])

    def __enter__(self):
        try:
            self.wait()
        except BaseException:
            self.__exit__()
            raise
        return self

    def wait(self):
        """Waits until the first request is answered correctly."""
        deadline = time.monotonic() + START_LIMIT
        while time.monotonic() < deadline:
            self.check()
            got = self.load("sources", first_address="127.0.3.1", count=1, timeout=0.2)
            if got["answered"]:
                return
            if got["wrong"]:
                raise Failure(f"answers with {got['problem']}")
            time.sleep(0.1)
        raise Failure(f"did not answer in {START_LIMIT} s")

    def load(self, command, **options):
        """Runs a command of the load generator against this server, and returns its output."""
        words = ["taskset", "-c", str(self.cores[1]), str(self.generator), command]
        options = {"server": f"127.0.0.1:{self.port}", "path": PATH, "payload": PAYLOAD, "pid": self.pid} | options
        for name, value in options.items():
            words += [f"--{name.replace('_', '-')}", str(value)]
        result = subprocess.run(words, capture_output=True, text=True, start_new_session=True)
        self.check()
        if result.returncode != 0:
            raise Failure(result.stderr.strip())
        pairs = (pair.split("=", 1) for pair in result.stdout.split())
        return {name: value.replace("_", " ") if "problem" in name else float(value) for name, value in pairs}


def free_port():
    """Returns a UDP port that is not in use."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
