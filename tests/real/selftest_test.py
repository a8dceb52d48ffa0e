"""The self-test on both real engines: planted work shows in its row, planted faults are noticed. No time is asserted:
what was planted is known from the engine's own count, in the same run."""
import json
import pathlib
import subprocess
import tempfile
import unittest

from engine import OPLEDGER, SMOLLM2

ATTEMPTS = 2  # a few passes on a shared machine


def selftest(engine, *arguments):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "selftest.json"
        done = subprocess.run([OPLEDGER, "selftest", engine, "-m", str(SMOLLM2), "-n", "8", "-d", "32", "--json",
                               str(out), *arguments], capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=300)
        if done.returncode not in (0, 4):
            raise AssertionError(f"selftest gave {done.returncode}: {done.stderr}")
        return json.loads(out.read_text(encoding="utf-8"))


class Selftest(unittest.TestCase):
    def test_planted_work_and_faults_are_noticed(self):
        """Eight seconds give no three launches, so no interval and nothing real: the row's size is looked at."""
        for engine, row, faults in (("llama", "norm", "unsorted_node"), ("ik", "attention", "changed_result")):
            with self.subTest(engine=engine):
                for _ in range(ATTEMPTS):
                    report = selftest(engine, "--row", row, "--faults", faults, "--budget", "8s")
                    found = report["rows"][0]
                    error = abs(found["gap"]["ms"] / found["truth_ms"] - 1)
                    if error < 0.5:
                        break
                self.assertGreater(found["spins"], 0)
                self.assertLess(error, 0.5, found)
                for fault in report["faults"]:
                    self.assertEqual(fault["outcome"], "fired", fault)


if __name__ == "__main__":
    unittest.main()
