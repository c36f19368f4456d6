"""Run with: python3 -m unittest discover --start-directory evidence/peers --top-level-directory evidence/peers"""

import os
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from driver.peer import STACKS, Peer
from driver.process import Client, Failure, Process
from driver.results import Results, shown, number, table

CORE = min(os.sched_getaffinity(0))


class Shown(unittest.TestCase):
    def test_a_value_has_three_digits_and_all_before_the_point(self):
        self.assertEqual([number(value) for value in (0, 0.1234, 1.234, 12.34, 99.96, 123.4, 999.9, 1234.5, -0.5)],
                         ["0", "0.12", "1.23", "12.3", "100", "123", "1,000", "1,234", "-0.50"])

    def test_a_spread_is_shown_of_more_rounds_than_one(self):
        self.assertEqual(shown({1: 3.0}), "3.00")
        self.assertEqual(shown({1: 3.0, 2: 1.0, 3: 10.0}), "3.00 (1.00–10.0)")
        self.assertEqual(shown({}), "–")

    def test_a_table_is_aligned(self):
        self.assertEqual(table("T", ["a", "b"], [["long", "1"]]), "T\n\n| a    | b |\n|------|---|\n| long | 1 |\n")


class Values(unittest.TestCase):
    def setUp(self):
        self.results = Results()
        for round_, ours, bare in ((1, 8.0, 2.0), (2, 9.0, 3.0)):
            self.results.add("cpu", "ours", round_, 16, "cpu_us", ours)
            self.results.add("cpu", "bare", round_, 16, "cpu_us", bare)
        self.results.add("cpu", "ours", 3, 16, "cpu_us", 1.0)

    def test_a_ratio_is_of_the_same_round(self):
        ratio = self.results.ratio(("cpu", "ours", 16, "cpu_us"), ("cpu", "bare", 16, "cpu_us"))
        self.assertEqual(ratio, {1: 4.0, 2: 3.0})

    def test_a_problem_is_no_value(self):
        self.results.add("cpu", "ours", 3, 16, "problem", "1 wrong answers")
        self.assertEqual(self.results.problems, ["ours, cpu, round 3: 16: 1 wrong answers"])
        self.assertEqual(self.results.get("cpu", "ours", 16, "problem"), {})

    def test_every_value_is_in_the_csv(self):
        with tempfile.TemporaryDirectory() as folder:
            self.results.write_csv(Path(folder) / "x.csv")
            lines = (Path(folder) / "x.csv").read_text().splitlines()
        self.assertEqual(len(lines), 1 + 5)
        self.assertIn("cpu,ours,16,cpu_us,2,9", lines)


def lives(pid):
    """Returns whether a process is there and not only waits to be collected."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Processes(unittest.TestCase):
    def test_the_clock_of_a_process_has_the_time_of_threads_that_have_ended(self):
        burn = "import threading, time; t = threading.Thread(target=lambda: sum(range(5_000_000))); t.start(); t.join()"
        burn += "; print(time.process_time(), flush=True); time.sleep(60)"
        with Process([sys.executable, "-c", burn], CORE, stdout=subprocess.PIPE) as process:
            said = float(process.child.stdout.readline())
            self.assertGreater(said, 0.02)
            self.assertAlmostEqual(process.cpu_seconds(), said, delta=0.01)

    def test_a_process_is_ended_with_its_children_even_if_it_ignores_that(self):
        script = "trap '' TERM; sleep 60 & echo $!; wait; sleep 60"
        with Process(["bash", "-c", script], CORE, stdout=subprocess.PIPE) as process:
            child = int(process.child.stdout.readline())
        # The signal is sent; the system may need a moment to end the process.
        end = time.monotonic() + 10
        while lives(child) and time.monotonic() < end:
            time.sleep(0.01)
        self.assertFalse(lives(child))

    def test_a_process_that_ends_is_a_failure_with_its_last_words(self):
        with Process(["sh", "-c", "echo first >&2; echo last words >&2; exit 3"], CORE) as process:
            process.child.wait(10)
            with self.assertRaisesRegex(Failure, "status 3: last words"):
                process.check()

    def test_a_client_is_asked_by_a_number_and_a_dead_one_is_a_failure(self):
        with Client(["sh", "-c", "read n; echo $((n + {port}))"], 7, CORE) as client:
            self.assertEqual(client.ask(5), 12)
            with self.assertRaises(Failure):
                client.ask(5)


class Stacks(unittest.TestCase):
    def test_every_stack_has_a_build_script_that_can_be_run(self):
        self.assertIn("libcoap", STACKS)
        for name in STACKS:
            self.assertTrue((Path(__file__).parents[1] / name / "build").stat().st_mode & 0o100, name)

    def test_a_command_is_filled_in_word_by_word(self):
        words = ["serve", "--bind", "{address}:{port}", "--resource", "{path}={payload}"]
        filled = Peer.fill(words, 5683)
        self.assertEqual(filled[:4], ["serve", "--bind", "127.0.0.1:5683", "--resource"])
        self.assertEqual(len(filled[4].split("=")[1]), 60)


if __name__ == "__main__":
    unittest.main()
