"""client METHOD URI [non] [block=BYTES] [observe=N] [identity=TEXT] [key=TEXT]: one call of coapace, whose path is in COAPACE."""

import json
import os
import subprocess
import sys

method, uri, *flags = sys.argv[1:]
flags = dict(flag.partition("=")[::2] for flag in flags)
command = "observe" if "observe" in flags else method.lower()
words = [os.environ["COAPACE"], command, uri, "--json"]
if command in ("fetch", "patch", "ipatch"):
    words[1:2] = ["request", "-m", command]
if "non" in flags:
    words.append("--non")
if "block" in flags:
    words += ["--block-size", flags["block"]]
if "observe" in flags:
    words += ["--count", flags["observe"]]
if "identity" in flags:
    words += ["-u", flags["identity"], "-k", flags["key"]]
if uri.startswith("coaps+"):
    words += ["--ca", os.path.join(os.environ["CERTIFICATES"], "ca.pem")]
if command not in ("ping", "get", "observe", "delete"):
    words += ["--file", "-", "--content-format", "text"]
called = subprocess.run(words, stdout=subprocess.PIPE, text=True)
if called.returncode not in (0, 3):
    sys.exit(called.returncode)
for line in called.stdout.splitlines():
    response = json.loads(line)
    if method == "PING":
        print("0.00")
    else:
        print(response["code"].split()[0], response.get("payload", "").encode().hex())
