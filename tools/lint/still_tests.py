#!/usr/bin/env python3
"""Unit tests neither sleep nor read a wall clock nor open network connections."""
import re

import tree

WHY = "a test that waits is slow where it passes and flaky where it fails: inject the clock, the seed and the facts"
FORBIDDEN = re.compile(
    r"sleep_for|sleep_until|\busleep\s*\(|\bnanosleep\s*\(|(?<!\w)sleep\s*\(|system_clock::now|steady_clock::now"
    r"|high_resolution_clock|\bclock_gettime\s*\(|\bgettimeofday\s*\(|\btime\s*\(\s*(?:0|NULL|nullptr)\s*\)|AF_INET")

root = tree.root_from_arguments()
findings = []
for path, text in tree.code(root):
    if path.parts[:2] != ("tests", "unit"):
        continue
    for number, line in enumerate(text.splitlines(), 1):
        if FORBIDDEN.search(line):
            findings.append(f"{path}:{number}: {line.strip()}")
tree.finish(findings, WHY)
