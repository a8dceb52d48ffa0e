#!/usr/bin/env python3
"""Every header, test and program opens with a comment that says what it is for; a .cpp may leave that to its
header, and a unit test to the header whose path it mirrors. Every header is included once."""
import pathlib

import tree

WHY = "the first lines are what decides whether a reader is in the right file"

root = tree.root_from_arguments()
findings = []
sources = dict(tree.code(root))
for path, text in sources.items():
    lines = text.splitlines()
    told = path.with_suffix(".h")
    if path.parts[:2] == ("tests", "unit"):
        told = pathlib.PurePosixPath("src", *path.parts[2:-1], path.stem.removesuffix("_test") + ".h")
    is_told_by_header = path.suffix == ".cpp" and told in sources
    if not is_told_by_header and not (lines and lines[0].startswith(("// ", "/* ", "/// "))):
        findings.append(f"{path}:1: opens without a comment on what it is for")
    guard = "#ifndef" if path.parts[0] == "sdk" else "#pragma once"
    if path.suffix == ".h" and not any(line.startswith(guard) for line in lines):
        findings.append(f"{path}: a header without {guard}")
tree.finish(findings, WHY)
