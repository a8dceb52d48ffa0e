#!/usr/bin/env python3
"""Names say what a thing is: no get_, Manager, Helper or Utils; no TODO without an issue number."""
import re

import tree

WHY = "such names fit anything, so things gather under them; an unowned TODO is never done"
RULES = [
    (re.compile(r"(?<![.>:\w])get_\w+\s*\("), "a function says what it returns, without get_"),
    (re.compile(r"\b(?:class|struct)\s+\w*(?:Manager|Helper|Utils?)\b"), "name the one thing that this type is"),
    (re.compile(r"\b(?:TODO|FIXME|XXX)\b(?!\s*\(?#\d)"), "a TODO carries an issue number"),
    (re.compile(r"^\s*using namespace\b"), "no using namespace"),
]

root = tree.root_from_arguments()
findings = []
for path, text in tree.code(root):
    for number, line in enumerate(text.splitlines(), 1):
        for pattern, what in RULES:
            if pattern.search(line):
                findings.append(f"{path}:{number}: {what}: {line.strip()}")
tree.finish(findings, WHY)
