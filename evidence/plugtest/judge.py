"""judge.py FOLDER: prints the verdicts of ttproto 0.1.16 on the captures TD_….pcap there.

A verdict other than `pass` is a failure, and so is a missing case. It needs ttproto.
"""

import contextlib
import io
import logging
import os
import sys

logging.disable(logging.CRITICAL)
with contextlib.redirect_stdout(io.StringIO()):
    from ttproto.core.analyzer import Analyzer, Conversation
    from ttproto.tat_coap.common import CoAPTestCase

# ttproto sorts the datagrams of a capture by token, and takes each further request that looks like the first of the case for
# another run of it. So where a case has several such requests, it demands one token for all. In CORE_20 to CORE_23 it demands
# different tokens at the same time, which leaves only the empty one. RFC 7252 §5.3.1 lets a client choose tokens freely as
# long as none is used for two requests at once, RFC 7959 §3.4 also for the blocks of a body, and the test descriptions say
# "may or may not be" equal. For these cases ttproto is told that the capture is one run; its checks are unchanged.
ONE_RUN = ["BLOCK_%02d" % n for n in range(1, 7)] + ["CORE_%02d" % n for n in range(20, 24)]

# ttproto has templates for these.
AS_THEY_ARE = (
    ["CORE_%02d" % n for n in range(1, 20) if n != 16]
    + ["CORE_31"]
    + ["OBS_%02d" % n for n in (1, 2, 4, 5, 6, 7, 8, 9, 10)]
)

by_token = CoAPTestCase.__dict__["correlate"]


def as_one_run(cls, conversations, _):
    """Returns all datagrams of the conversations, in the order of the capture."""
    run = Conversation(cls.get_nodes_identification_templates())
    frames = [frame for conversation in conversations for frame in conversation]
    for frame in sorted(frames, key=lambda frame: frame["id"]):
        run.append(frame)
    return [run]


def judge(case, capture):
    """Returns the verdict of ttproto and its reasons."""
    CoAPTestCase.correlate = classmethod(as_one_run) if case in ONE_RUN else by_token
    with contextlib.redirect_stdout(io.StringIO()):
        _, verdict, _, reasons, _, errors = Analyzer("tat_coap").analyse(capture, "TD_COAP_" + case)
    return verdict, reasons + "".join("%r\n" % (error[1],) for error in errors)


def cut(capture, frames):
    """Makes a copy of a capture that ends after this many frames."""
    shortened = os.path.join(os.path.dirname(capture), "cut.pcap")
    with open(capture, "rb") as file:
        data = file.read()
    end = 24
    for _ in range(frames):
        end += 16 + int.from_bytes(data[end + 8 : end + 12], "little")
    with open(shortened, "wb") as file:
        file.write(data[:end])
    return shortened


def main():
    folder = sys.argv[1]
    failed = []
    for case in sorted(AS_THEY_ARE + ONE_RUN):
        capture = os.path.join(folder, "TD_COAP_%s.pcap" % case)
        verdict, reasons = judge(case, capture)
        print("TD_COAP_%-9s %s%s" % (case, verdict, ", as one run" if case in ONE_RUN else ""))
        if verdict != "pass":
            failed.append(case)
            print(reasons, file=sys.stderr)
        # This checks that ttproto can refuse: a request alone does not pass, nor does the first exchange of several.
        if judge(case, cut(capture, 2 if case in ONE_RUN else 1))[0] == "pass":
            failed.append(case)
            print("the beginning passes for %s" % case, file=sys.stderr)
    if failed:
        sys.exit("ttproto: not passed: " + ", ".join(failed))


main()
