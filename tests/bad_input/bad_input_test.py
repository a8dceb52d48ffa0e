"""Whatever a person gets wrong ends in one line on stderr that names the flag or the file, and in exit code 2
(3 when an engine failed); nothing is left behind. Runs the real program against the fake engine."""
import contextlib
import fcntl
import json
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile
import unittest

OPLEDGER = os.environ["OPLEDGER_BINARY"]
FAKE_ENGINE = os.environ["OPLEDGER_FAKE_ENGINE"]
SCHEMA = pathlib.Path(__file__).parents[2] / "schema/record.schema.json"
RECORD_VERSION = json.loads(SCHEMA.read_text())["$defs"]["header"]["properties"]["version"]["const"]


def gguf(architecture="llama"):
    """A small model file, byte by byte as the GGUF specification (version 3) lays it out."""
    def text(value):
        return struct.pack("<Q", len(value)) + value.encode()
    keys = text("general.architecture") + struct.pack("<I", 8) + text(architecture)
    keys += text("llama.block_count") + struct.pack("<II", 4, 2)
    tensor = text("token_embd.weight") + struct.pack("<IQQIQ", 2, 32, 64, 0, 0)
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 2) + keys + tensor
    return head + b"\0" * (-len(head) % 32) + b"\0" * (32 * 64 * 4)


class BadInput(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="opledger-bad-input-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.model = self.folder / "m.gguf"
        self.model.write_bytes(gguf())
        self.lock = self.folder / "lock"
        self.environment = {**os.environ, "OPLEDGER_CACHE": str(self.folder / "cache"), "OPLEDGER_LOCK": str(self.lock)}

    def fake(self, name, **script):
        """An engine spec for the fake engine under this name, told what to do by a file beside it."""
        program = self.folder / name
        if not program.exists():
            os.link(FAKE_ENGINE, program) if os.stat(FAKE_ENGINE).st_dev == os.stat(self.folder).st_dev \
                else shutil.copy(FAKE_ENGINE, program)
        (self.folder / f"{name}.json").write_text(json.dumps(script))
        return f"exec:{program}"

    def run_program(self, *arguments):
        return subprocess.run([OPLEDGER, *map(str, arguments)], capture_output=True, text=True, check=False,
                              env=self.environment, stdin=subprocess.DEVNULL, timeout=120)

    def refused(self, *arguments, names, code=2):
        """The one line of a refusal; `names` are words that must stand in it."""
        run = self.run_program(*arguments)
        lines = [line for line in run.stderr.splitlines() if line.startswith("opledger: ")]
        self.assertEqual(run.returncode, code, run.stderr)
        self.assertEqual(len(lines), 1, run.stderr)
        self.assertEqual(run.stderr.splitlines()[-1], lines[0], "something is printed after the error")
        for name in names:
            self.assertIn(str(name), lines[0])
        return lines[0]

    def compare(self, *more, model=None, a=None, b=None):
        return ("compare", a or self.fake("fake_a"), b or self.fake("fake_b"), "-m", model or self.model,
                "-p", "8", *more)

    def test_a_model_that_is_fine_reaches_the_engines(self):
        # Without this, every refusal below could have another cause.
        run = self.run_program("graph", self.fake("fake_a"), "-m", self.model, "-p", "8")
        # 4: this small file lacks most weights that the fake graph reads, and the graph is called incomplete.
        self.assertIn(run.returncode, (0, 4), run.stderr)

    # The command line

    def test_no_command(self):
        self.refused(names=["--help"])

    def test_a_command_that_does_not_exist(self):
        self.refused("compair", "a", "b", names=["compair"])

    def test_an_unknown_flag(self):
        self.refused("engine", "add", "x", "--form", "d", names=["--form", "opledger engine add --help"])
        self.refused("report", "r.json", "--no-such-flag", names=["--no-such-flag"])

    def test_a_value_that_is_no_number(self):
        self.refused(*self.compare("-n", "many"), names=["many"])

    def test_more_threads_than_cores(self):
        self.refused(*self.compare("-t", "4096"), names=["4096"])

    def test_an_unknown_engine(self):
        self.refused(*self.compare(a="no_such_engine"), names=["no_such_engine", "engine add"])

    # The model

    def test_a_model_that_is_not_there(self):
        self.refused(*self.compare(model=self.folder / "gone.gguf"), names=["gone.gguf"])

    def test_a_model_that_is_a_folder(self):
        self.refused(*self.compare(model=self.folder), names=[self.folder])

    def test_a_model_that_is_empty(self):
        self.model.write_bytes(b"")
        self.refused(*self.compare(), names=["m.gguf"])

    def test_a_model_that_is_something_else(self):
        self.model.write_bytes(b"PK\3\4" + bytes(1000))
        self.refused(*self.compare(), names=["m.gguf", "GGUF"])

    def test_a_model_cut_at_any_of_50_places(self):
        whole = gguf()
        for place in range(50):
            cut = place * (len(whole) - 1) // 49
            with self.subTest(bytes_kept=cut):
                self.model.write_bytes(whole[:cut])
                self.refused(*self.compare(), names=["m.gguf"])

    # Judging commands

    def judge(self, *more, a="echo took 1 ms", b="echo took 1 ms"):
        return ("judge", "--cmd-a", a, "--cmd-b", b, "--budget", "1s", *more)

    def test_a_judgement_of_one(self):
        self.refused("judge", "--cmd-a", "true", names=["--cmd-b"])
        self.refused("judge", names=["--cmd-b"])
        self.refused("judge", self.fake("fake_a"), "--cmd-a", "true", "--cmd-b", "true", names=["--cmd-b"])
        self.refused("judge", self.fake("fake_a"), "-m", self.model, names=["1 engine"])

    def test_an_engine_judged_by_a_commands_flags(self):
        self.refused("judge", self.fake("fake_a"), self.fake("fake_b"), "--figure", "([0-9]+)", names=["--figure"])
        self.refused(*self.judge("-fa", "1"), names=["-fa"])
        self.refused("judge", self.fake("fake_a"), self.fake("fake_b"), "-m", self.model, "-p", "8,16",
                     names=["one workload"])

    def test_values_that_judge_does_not_know(self):
        for flag, value in (("--expect", "better"), ("--better", "faster"), ("--min-effect", "lots"), ("--min-effect", "-1%"),
                            ("--figure", "took"), ("--figure", "took ([0-9"), ("--budget", "soon")):
            with self.subTest(flag=flag, value=value):
                self.refused(*self.judge(flag, value), names=[flag])

    def test_a_command_that_fails_while_it_is_judged(self):
        self.refused(*self.judge(a="echo no such file; exit 3"), names=["exited with 3: no such file"], code=3)

    def test_pairs_of_other_commands(self):
        record = self.folder / "pairs.jsonl"
        self.run_program(*self.judge("--record", record, "--figure", "took ([0-9]+)"))
        kept = record.read_text()
        self.refused(*self.judge("--record", record, a="true"), names=[record])
        self.refused(*self.judge("--record", self.folder), names=[self.folder])
        self.refused(*self.judge("--record", self.folder / "gone" / "p"), names=["gone"])
        self.refused(*self.judge("--history", record), names=[record])
        self.refused(*self.judge("--history", self.folder / "gone" / "h"), names=["gone"])
        self.refused(*self.judge("--json", self.folder / "gone" / "j"), names=["gone"])
        self.assertEqual(record.read_text(), kept)

    # The record and the machine

    def test_output_that_nobody_gets(self):
        record = self.folder / "r.json"
        record.write_text(json.dumps({"type": "header", "schema": "opledger-record", "version": RECORD_VERSION,
                                      "machine": {"cores": 1}}) + "\n")
        graph = ("graph", self.fake("fake_a"), "-m", self.model, "-p", "8")
        for arguments in (("report", record), ("report", record, "--json", "-"), ("regress", record), graph, (*graph, "--json", "-"),
                          ("engine", "list"), ("--help",), ("skeleton", "--arch", "llama", "--layers", "1", "--vocab", "256",
                                                           "-o", self.folder / "s.gguf", "--json", "-")):
            for where in (">/dev/full", ">&-"):
                with self.subTest(arguments=arguments, where=where):
                    run = subprocess.run(["sh", "-c", f'exec "$@" {where}', "sh", OPLEDGER, *map(str, arguments)],
                                         stderr=subprocess.PIPE, text=True, check=False, env=self.environment, timeout=120)
                    self.assertEqual(run.returncode, 2, run.stderr)
                    self.assertEqual(run.stderr.count("\n"), 1, run.stderr)
                    self.assertIn("opledger: stdout: cannot be written", run.stderr)

    def test_a_record_that_cannot_be_written(self):
        self.refused(*self.compare("--record", self.folder / "nowhere" / "r.json.gz"), names=["nowhere"])
        self.refused(*self.compare("--record", self.folder), names=[self.folder])

    def test_an_older_record_beside_which_nothing_can_be_written(self):
        record = self.folder / "r.json"
        record.write_text("older\n")
        (self.folder / "r.json.part").mkdir()
        self.refused(*self.compare("--record", record), names=["r.json.part"])
        self.assertEqual(record.read_text(), "older\n")

    def test_a_report_of_a_file_that_is_no_record(self):
        self.refused("report", self.folder / "gone.json.gz", names=["gone.json.gz"])
        self.refused("report", self.model, names=["m.gguf"])

    def test_two_measurements_at_once(self):
        with contextlib.closing(open(self.lock, "w", encoding="utf-8")) as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            held.write("12345 opledger compare x y\n")
            held.flush()
            self.refused(*self.compare(), names=["12345"])

    # The engine

    def test_an_engine_that_dies(self):
        dying = self.fake("fake_a", faults=[{"method": "load", "at": 1, "act": "die"}])
        self.refused(*self.compare(a=dying), names=["fake_a"], code=3)

    def test_an_engine_of_another_protocol_version(self):
        self.refused(*self.compare(a=self.fake("fake_a", protocol="7")), names=["7"])

    def test_an_engine_whose_library_changed(self):
        library = self.folder / "libllama.so"
        library.write_bytes(b"new")
        home = self.folder / "cache" / "engines" / "old"
        home.mkdir(parents=True)
        (home / "engine.json").write_text(json.dumps({
            "name": "old", "kind": "ggml", "adapter": FAKE_ENGINE, "family": "llama.cpp", "library_path": [],
            "libraries": [{"path": str(library), "bytes": 3, "xxh3": "78af5f94892f3950"}], "source": "s", "build": {}}))
        self.refused(*self.compare(a="old"), names=["libllama.so", "engine add old"])
        listed = self.run_program("engine", "list")
        self.assertIn("stale", listed.stdout)

    # Adding engines

    def tree(self, cmake, source):
        tree = self.folder / "tree"
        for name, content in {"CMakeLists.txt": cmake, "src/llama.cpp": source, "include/llama.h": "#pragma once\n",
                              "ggml/include/ggml.h": "enum ggml_op {\n  GGML_OP_NONE,\n  GGML_OP_COUNT,\n};\n"}.items():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_text(content)
        return tree

    def test_a_source_that_is_no_tree(self):
        self.refused("engine", "add", "x", "--from", self.folder, names=[self.folder, "CMakeLists.txt"])
        self.refused("engine", "add", "x", "--from", self.folder / "gone", names=["--from", "gone"])

    def test_a_tree_that_does_not_compile(self):
        cmake = "cmake_minimum_required(VERSION 3.20)\nproject(t CXX)\nadd_library(llama SHARED src/llama.cpp)\n"
        tree = self.tree(cmake, "int f() { return missing_name; }\n")
        line = self.refused("engine", "add", "x", "--from", tree, names=["llama.cpp:1", "missing_name", "log"])
        log = line.split("log is ")[1].strip()
        self.assertIn("missing_name", pathlib.Path(log).read_text())
        self.assertFalse((self.folder / "cache/engines/x/engine.json").exists())

    def test_a_tree_that_does_not_configure(self):
        tree = self.tree("cmake_minimum_required(VERSION 3.20)\nproject(t CXX)\nmessage(FATAL_ERROR \"no such chip\")\n", "")
        self.refused("engine", "add", "x", "--from", tree, names=["no such chip"])

    def test_flags_of_engine_add_that_contradict_each_other(self):
        for flags in (["--from", ".", "--lib", "."], ["--lib", "."], ["--headers", "."], [],
                      ["--lib", ".", "--headers", ".", "--cmake", "-DA=1"], ["--from", ".", "--build", ".", "--cmake", "-DA=1"]):
            with self.subTest(flags=flags):
                self.refused("engine", "add", "x", *flags, names=["--"])

    def test_names_that_are_no_engine_names(self):
        for name in ("Llama", "a/b", "..", "a@b"):
            with self.subTest(name=name):
                self.refused("engine", "add", name, "--from", ".", names=[name])
                self.refused("engine", "remove", name, names=[name])

    def test_a_cache_that_cannot_be_written(self):
        self.environment["OPLEDGER_CACHE"] = str(self.model)
        tree = self.tree("", "")
        self.refused("engine", "add", "x", "--from", tree, names=["m.gguf"])


if __name__ == "__main__":
    unittest.main()
