"""What the linters share: which files are ours, and how a finding is printed. Each linter is a program of its
own that takes the root of a tree, prints one line a finding with the reason for the rule, and exits 1."""
import pathlib
import subprocess
import sys

CODE = (".cpp", ".h", ".c", ".cu", ".cuh")


def root_from_arguments() -> pathlib.Path:
    return pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()


def files(root: pathlib.Path):
    """Every text file of ours below root, as (path relative to root, text). Build output never counts."""
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard"],
        capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        names = listed.stdout.splitlines()
    else:  # an unpacked archive has no git folder
        names = [str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()]
        names = [name for name in names if not name.startswith(("build/", ".git/"))]
    for name in sorted(set(names)):
        try:
            yield pathlib.PurePosixPath(name), (root / name).read_text(encoding="utf-8")
        except (UnicodeDecodeError, FileNotFoundError):
            continue


def code(root: pathlib.Path):
    return ((path, text) for path, text in files(root) if path.suffix in CODE)


def finish(findings, why: str):
    for finding in findings:
        print(finding)
    if findings:
        print(f"why: {why}")
        sys.exit(1)
