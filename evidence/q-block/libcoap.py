"""libcoap 4.3.5 with Q-Block, for the programs that run it."""

import os
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", HERE.parent.parent / "target")).resolve()


class Missing(Exception):
    """libcoap cannot be had on this machine, with the reason."""


def build():
    """Builds libcoap unless it is there. Returns the paths of its client and of its server."""
    out = TARGET / "q-block"
    built = subprocess.run([HERE / "build", out], capture_output=True, text=True)
    if built.returncode == 77:
        raise Missing(built.stderr.strip().splitlines()[-1])
    if built.returncode != 0:
        raise RuntimeError(f"libcoap does not build: {built.stderr}")
    return out / "coap-client", out / "coap-server"
