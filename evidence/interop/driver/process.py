"""Processes: started, given a time limit, and ended in any case together with their children."""

import os
import select
import signal
import subprocess
import tempfile
import time


class Failure(Exception):
    """A failure, in words."""


class Process:
    """A process in a session of its own, so that all of it can be ended."""

    def __init__(self, words, **pipes):
        self.errors = pipes.pop("stderr", None) or tempfile.TemporaryFile("w+", errors="replace")
        pipes.setdefault("stdin", subprocess.DEVNULL)
        pipes.setdefault("stdout", subprocess.PIPE)
        self.child = subprocess.Popen(words, stderr=self.errors, start_new_session=True, **pipes)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for number, patience in ((signal.SIGTERM, 2), (signal.SIGKILL, 10)):
            try:
                os.killpg(self.child.pid, number)
            except ProcessLookupError:
                pass  # the group is gone; the child may still wait to be collected
            try:
                self.child.wait(patience)
                break
            except subprocess.TimeoutExpired:
                continue
        for file in (self.child.stdin, self.child.stdout):
            if file:
                file.close()

    def wait(self, limit):
        """Returns its exit status, if it ends within `limit` seconds."""
        try:
            return self.child.wait(limit)
        except subprocess.TimeoutExpired:
            raise Failure(f"did not end within {limit} s") from None

    def line(self, limit):
        """Waits for a line on standard output, for `limit` seconds."""
        deadline = time.monotonic() + limit
        descriptor, text = self.child.stdout.fileno(), b""
        while b"\n" not in text:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([descriptor], [], [], left)[0]:
                raise Failure(f"says nothing within {limit} s")
            more = os.read(descriptor, 4096)
            if not more:
                raise Failure(f"ended at once: {self.last_words()}")
            text += more

    def last_words(self):
        """Returns the last line on standard error."""
        self.errors.seek(0)
        lines = self.errors.read().strip().splitlines()
        return lines[-1] if lines else "it says nothing"


def call(words, payload, limit):
    """Runs a command to its end. Returns exit status, standard output, and the last line of standard error."""
    with Process(words, stdin=subprocess.PIPE) as process:
        try:
            out, _ = process.child.communicate(payload, limit)
        except subprocess.TimeoutExpired:
            raise Failure(f"the client did not end within {limit} s: {process.last_words()}") from None
        return process.child.returncode, out.decode(), process.last_words()
