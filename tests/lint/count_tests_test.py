"""The sum that `check` prints: what counts as passed, failed and skipped. The JUnit forms are those that
ctest 3.25 writes for a test that passes, fails, skips itself, is disabled, and was never built."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = pathlib.Path(__file__).resolve().parents[2] / "tools" / "count_tests"
PASSED = '<testcase name="a" status="run"/>'
FAILED = '<testcase name="b" status="fail"><failure message=""/></testcase>'
SKIPPED = '<testcase name="c" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/></testcase>'
DISABLED = '<testcase name="d" status="disabled"/>'
NEVER_BUILT = '<testcase name="e" status="notrun"><skipped message="Unable to find executable"/></testcase>'


def count(*cases):
    with tempfile.NamedTemporaryFile("w", suffix=".xml") as junit:
        junit.write("<testsuite>" + "".join(cases) + "</testsuite>")
        junit.flush()
        run = subprocess.run([sys.executable, PROGRAM, junit.name], capture_output=True, text=True, check=True)
    return run.stdout.strip()


class Counting(unittest.TestCase):
    def test_each_kind_of_outcome_is_counted_once(self):
        self.assertEqual(count(PASSED, PASSED, FAILED, SKIPPED, DISABLED), "2 1 2")

    def test_a_program_that_was_never_built_is_a_failure(self):
        self.assertEqual(count(PASSED, NEVER_BUILT), "1 1 0")


if __name__ == "__main__":
    unittest.main()
