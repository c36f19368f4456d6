"""client METHOD URI [non] [block=BYTES] [observe=N] [identity=TEXT] [key=TEXT]: one call of libcoap's coap-client."""

import os
import re
import subprocess
import sys
import tempfile

method, uri, *flags = sys.argv[1:]
flags = dict(flag.partition("=")[::2] for flag in flags)
words = ["coap-client-openssl", "-v", "7", "-B", "20", "-m", method.lower()]
if "non" in flags:
    words.append("-N")
if "block" in flags:
    words += ["-b", flags["block"]]
if "observe" in flags:
    # coap-client observes for this many seconds, and cancels.
    words += ["-s", str(int(flags["observe"]) - 1), "-w"]
if "identity" in flags:
    words += ["-u", flags["identity"], "-k", flags["key"]]
if uri.startswith("coaps+"):
    words += ["-R", os.path.join(os.environ["CERTIFICATES"], "ca.pem")]
with tempfile.TemporaryDirectory() as folder:
    sent, received = os.path.join(folder, "sent"), os.path.join(folder, "received")
    payload = sys.stdin.buffer.read()
    if payload:
        with open(sent, "wb") as file:
            file.write(payload)
        words += ["-f", sent, "-t", "0"]
    if "observe" not in flags:
        words += ["-o", received]
    called = subprocess.run([*words, uri], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    # It logs the messages sent and received. The last code of a response is the code of the whole.
    log = called.stdout.decode(errors="replace")
    codes = re.findall(r" c:([245]\.\d\d) ", log)
    if not codes:
        sys.exit(f"no response: {log.strip().splitlines()[-1:]}")
    if "observe" in flags:
        for line in re.findall(r"^(\d{9,})$", log, re.MULTILINE)[:int(flags["observe"])]:
            print("2.05", line.encode().hex())
    else:
        body = b""
        if os.path.exists(received):
            with open(received, "rb") as file:
                body = file.read()
        print(codes[-1], body.hex())
