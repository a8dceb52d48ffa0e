"""The self-test on both real engines: a planted row is found, planted faults are noticed. No time is asserted: what
was planted is known from the engine's own count, in the same run."""
import json
import subprocess
import tempfile
import unittest

from engine import OPLEDGER, SMOLLM2

ATTEMPTS = 2  # a row of a 95% interval on a shared machine


def selftest(engine, *arguments):
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        done = subprocess.run([OPLEDGER, "selftest", engine, "-m", str(SMOLLM2), "-n", "8", "-d", "32", "--json", out.name,
                               *arguments], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
                              timeout=300)
        if done.returncode not in (0, 4):
            raise AssertionError(f"selftest gave {done.returncode}: {done.stderr}")
        return json.load(open(out.name, encoding="utf-8"))


class Selftest(unittest.TestCase):
    def test_a_row_is_found_in_each_engine(self):
        for engine, row in (("llama", "norm"), ("ik", "attention")):
            with self.subTest(engine=engine):
                for _ in range(ATTEMPTS):
                    found = selftest(engine, "--row", row, "--faults", "none", "--budget", "8s")["rows"][0]
                    if found["passed"]:
                        break
                self.assertTrue(found["passed"], found)

    def test_faults_are_noticed(self):
        for engine, faults in (("llama", "unsorted_node,broken_fusion"), ("ik", "changed_result")):
            with self.subTest(engine=engine):
                report = selftest(engine, "--row", "none", "--faults", faults)
                for fault in report["faults"]:
                    self.assertEqual(fault["outcome"], "fired", fault)


if __name__ == "__main__":
    unittest.main()
