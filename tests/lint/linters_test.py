"""Each linter stays silent on a tree that keeps its rule and goes red on one that breaks it."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

LINTERS = pathlib.Path(__file__).resolve().parents[2] / "tools" / "lint"
HEAD = "// What this is for.\n"


class Linters(unittest.TestCase):
    def findings(self, linter, files):
        """What the linter prints for a tree of these files; empty when it is content."""
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                path = pathlib.Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            run = subprocess.run([sys.executable, LINTERS / f"{linter}.py", folder],
                                 capture_output=True, text=True, check=False)
        self.assertEqual(run.stderr, "")
        self.assertEqual(run.returncode, 1 if run.stdout else 0)
        return run.stdout

    def test_a_file_of_600_lines_passes_and_one_of_601_does_not(self):
        self.assertEqual(self.findings("file_sizes", {"src/core/a.cpp": "\n" * 600}), "")
        self.assertIn("601 lines", self.findings("file_sizes", {"src/core/a.cpp": "\n" * 601}))

    def test_includes_point_down_only(self):
        down = {"src/session/a.cpp": '#include "platform/child.h"\n#include "core/base/result.h"\n'}
        self.assertEqual(self.findings("include_direction", down), "")
        for folder, include in (("core", "platform"), ("platform", "gguf"), ("gguf", "session"),
                                ("report", "session"), ("session", "cli")):
            found = self.findings("include_direction", {f"src/{folder}/a.cpp": f'#include "{include}/x.h"\n'})
            self.assertIn(f"a.cpp:1: {folder} must not include {include}", found)

    def test_core_headers_name_no_json_but_core_sources_may(self):
        text = "#include <nlohmann/json.hpp>\n"
        self.assertEqual(self.findings("include_direction", {"src/core/x/a.cpp": text}), "")
        self.assertIn("core header", self.findings("include_direction", {"src/core/x/a.h": text}))

    def test_a_folder_without_a_place_in_the_pipeline_is_named(self):
        self.assertIn("misc has no place", self.findings("include_direction", {"src/misc/a.cpp": ""}))

    def test_paths_of_one_machine_and_hosts_are_found(self):
        self.assertEqual(self.findings("plain_paths", {"a.cpp": 'open("/proc/cpuinfo"); // a/b and build/bin/x\n'}), "")
        self.assertIn("one machine", self.findings("plain_paths", {"a.cpp": 'open("/' + 'home/ann/x");\n'}))
        self.assertIn("names a host", self.findings("plain_paths", {"a.md": "see https" + "://packages.example/x\n"}))

    def test_names_that_fit_anything_are_found(self):
        self.assertEqual(self.findings("names", {"a.cpp": "std::get<int>(x); app.get_name(); // TODO(#12) later\n"}), "")
        for text in ("int get_size();", "class RowManager {", "struct PathUtils {", "// TODO later", "using namespace std;"):
            self.assertNotEqual(self.findings("names", {"a.cpp": text + "\n"}), "", text)

    def test_a_file_says_what_it_is_for(self):
        self.assertEqual(self.findings("file_heads", {"a.h": HEAD + "#pragma once\n", "a.cpp": '#include "a.h"\n'}), "")
        mirrored = {"src/core/a.h": HEAD + "#pragma once\n", "tests/unit/core/a_test.cpp": "int x;\n"}
        self.assertEqual(self.findings("file_heads", mirrored), "")
        self.assertIn("b_test.cpp:1", self.findings("file_heads", {**mirrored, "tests/unit/core/b_test.cpp": "int x;\n"}))
        self.assertIn("a.cpp:1", self.findings("file_heads", {"a.cpp": "int x;\n"}))
        self.assertIn("pragma once", self.findings("file_heads", {"a.h": HEAD}))

    def test_unit_tests_may_not_wait_and_others_may(self):
        text = "std::this_thread::sleep_for(1s);\n"
        self.assertEqual(self.findings("still_tests", {"tests/fake/a.cpp": text}), "")
        self.assertIn("sleep_for", self.findings("still_tests", {"tests/unit/a_test.cpp": text}))
        self.assertIn("now", self.findings("still_tests", {"tests/unit/a_test.cpp": "auto t = std::chrono::steady_clock::now();\n"}))

    def test_versions_agree_and_none_is_missing(self):
        tree = {"CMakeLists.txt": "project(opledger VERSION 1.2.3)\n", "CHANGELOG.md": "# Changes\n\n## 1.2.3\n",
                "engines/ggml/identity.cpp": '{"version", "1.2.3"}\n'}
        self.assertEqual(self.findings("one_version", tree), "")
        self.assertIn("versions differ", self.findings("one_version", {**tree, "CHANGELOG.md": "## 1.2.4\n"}))
        self.assertIn("states no version", self.findings("one_version", {**tree, "CHANGELOG.md": "none\n"}))


if __name__ == "__main__":
    unittest.main()
