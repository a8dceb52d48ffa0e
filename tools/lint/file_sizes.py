#!/usr/bin/env python3
"""No source file is longer than 600 lines (the aim is 400)."""
import tree

LIMIT_LINES = 600
WHY = "a file holds one concept; past 600 lines readers stop reading it whole and it grows by itself"

root = tree.root_from_arguments()
findings = []
for path, text in tree.files(root):
    lines = text.count("\n")
    if path.suffix in tree.CODE + (".py", ".md") and lines > LIMIT_LINES:
        findings.append(f"{path}: {lines} lines, the limit is {LIMIT_LINES}: split it by concept")
tree.finish(findings, WHY)
