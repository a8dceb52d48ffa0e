#!/usr/bin/env python3
"""The version is the same wherever it is written: the build, the changelog and the adapter."""
import re

import tree

WHY = "a record names the version that wrote it; two places that disagree make that name a guess"
# Each place must exist: a version that moved away would otherwise never be compared again.
PLACES = {
    "CMakeLists.txt": r"project\(opledger VERSION (\d+\.\d+\.\d+)",
    "CHANGELOG.md": r"^## (\d+\.\d+\.\d+)",
    "engines/ggml/identity.cpp": r'"version", "(\d+\.\d+\.\d+)"',
}

root = tree.root_from_arguments()
texts = {str(path): text for path, text in tree.files(root) if str(path) in PLACES}
found = {}
findings = []
for place, pattern in PLACES.items():
    match = re.search(pattern, texts.get(place, ""), re.MULTILINE)
    if match:
        found[place] = match[1]
    else:
        findings.append(f"{place}: states no version that {pattern} finds")
if len(set(found.values())) > 1:
    findings.append("versions differ: " + ", ".join(f"{place} says {version}" for place, version in found.items()))
tree.finish(findings, WHY)
