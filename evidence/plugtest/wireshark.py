"""wireshark.py FOLDER COMMAND: checks what tshark finds in the captures TD_….pcapng there, and in one of `COMMAND get --pcap`.

It marks as retransmitted exactly the confirmable messages that were sent again, and its response times are those of the
capture, and of the command, within a millisecond.
"""

import concurrent.futures
import json
import os
import socket
import statistics
import subprocess
import sys
import threading

# Retransmissions that arrive, or leave, on lossy paths. Other captures have none.
RETRANSMISSIONS = {"CORE_15": 2, "CORE_16": 3, "OBS_05": 2, "OBS_11": 1}

MILLISECOND = 0.001
FIELDS = "frame.time_epoch udp.srcport udp.payload coap.type coap.retransmitted coap.response_to coap.response_time"
REQUESTS = 15


def read(capture, *options):
    """Returns the frames of a capture, as dictionaries of the fields that tshark prints."""
    fields = FIELDS.split()
    call = ["tshark", "-r", capture, "-T", "fields", "-E", "separator=,", *options]
    for field in fields:
        call += ["-e", field]
    lines = subprocess.run(call, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout.decode()
    return [dict(zip(fields, line.split(","))) for line in lines.splitlines()]


def examine(name, frames):
    """Returns the numbers of retransmissions and of response times, both checked against the datagrams."""
    seen, retransmissions, times = set(), 0, []
    for frame in frames:
        sent = (frame["udp.srcport"], frame["udp.payload"])
        again = frame["coap.type"] == "0" and sent in seen
        seen.add(sent)
        assert bool(frame["coap.retransmitted"]) == again, (name, frame)
        retransmissions += again
        if frame["coap.response_time"]:
            request = frames[int(frame["coap.response_to"]) - 1]
            passed = float(frame["frame.time_epoch"]) - float(request["frame.time_epoch"])
            time = float(frame["coap.response_time"])
            assert abs(passed - time) < MILLISECOND, (name, frame)
            times.append(time)
    return retransmissions, times


def answer_the_second(server):
    """Answers every second datagram with 2.05 and no payload, so the first transmission of each request is ignored."""
    for _ in range(REQUESTS):
        server.recv(2048)
        request, client = server.recvfrom(2048)
        token = request[0] & 15
        server.sendto(bytes([0x60 | token, 0x45]) + request[2 : 4 + token], client)


def ask(command, capture):
    """Runs the command against a server that ignores every other datagram. Returns the port, and the times that the
    command printed, in s."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(10)
        port = server.getsockname()[1]
        answering = threading.Thread(target=answer_the_second, args=[server])
        answering.start()
        uri = "coap://127.0.0.1:%d/x" % port
        timer = "default:ack_timeout=30ms"
        call = [command, "get", uri, "--cc", timer, "--repeat", str(REQUESTS), "--json", "--pcap", capture]
        said = subprocess.run(call, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout
        answering.join()
    lines = [json.loads(line) for line in said.splitlines()]
    return port, [line["elapsed_ms"] / 1000 for line in lines if "elapsed_ms" in line]


def main():
    folder, command = sys.argv[1:]
    cases = sorted(name for name in os.listdir(folder) if name.startswith("TD_") and name.endswith(".pcapng"))
    responses = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        captures = list(pool.map(read, [os.path.join(folder, name) for name in cases]))
    for name, frames in zip(cases, captures):
        case = name[len("TD_COAP_") : -len(".pcapng")]
        retransmissions, times = examine(case, frames)
        assert retransmissions == RETRANSMISSIONS.get(case, 0), (case, retransmissions)
        responses += len(times)
    assert set(RETRANSMISSIONS) <= {name[len("TD_COAP_") : -len(".pcapng")] for name in cases}
    assert responses > len(cases) / 2, responses
    print("tshark: %d captures, %d response times; retransmissions: %s" % (len(cases), responses, RETRANSMISSIONS))

    capture = os.path.join(folder, "get.pcapng")
    port, elapsed = ask(command, capture)
    retransmissions, times = examine("get", read(capture, "-d", "udp.port==%d,coap" % port))
    assert (retransmissions, len(times), len(elapsed)) == (REQUESTS, REQUESTS, REQUESTS), (times, elapsed)
    apart = [said - time for said, time in zip(elapsed, times)]
    # The median is compared, because another process may run between the reading of the clock and the departure of a datagram.
    assert abs(statistics.median(apart)) < MILLISECOND, apart
    print("tshark: coapace get: %d retransmissions, elapsed and response time %.3f ms apart (median), %.3f ms at most"
          % (retransmissions, 1000 * statistics.median(apart), 1000 * max(apart, key=abs)))


main()
