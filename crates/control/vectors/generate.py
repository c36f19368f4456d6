#!/usr/bin/env python3
"""Writes the vectors beside this file: for every mechanism and preset a script of events, with the timeout that each has to arm.

    python3 vectors/generate.py            writes the files
    python3 vectors/generate.py --check    checks them; the exit status is 0 if the files are up to date
"""

import sys
from pathlib import Path

sys.dont_write_bytecode = True  # a check leaves no files behind

from reference.catalogue import traces  # noqa: E402
from reference.worked import worked  # noqa: E402

HERE = Path(__file__).resolve().parent


def files():
    for lives in traces():
        folder = "bulk/" if lives[0].mechanism.bulk else ""
        yield folder + lives[0].name.replace(":preset=", "@") + ".csv", "".join(life.text() for life in lives)
    yield "worked.csv", "".join(trace.text() for trace in worked())


def main():
    check = sys.argv[1:] == ["--check"]
    names, stale = set(), []
    for name, text in files():
        names.add(name)
        path = HERE / name
        if check and (not path.exists() or path.read_text(encoding="utf-8") != text):
            stale.append(name)
        elif not check:
            path.write_text(text, encoding="utf-8", newline="\n")
    found = (path.relative_to(HERE).as_posix() for path in HERE.glob("**/*.csv"))
    stale += sorted(name for name in found if name not in names)
    if stale:
        sys.exit("not as generated: " + ", ".join(stale))


if __name__ == "__main__":
    main()
