#!/usr/bin/env python3
"""Includes point down the pipeline only, and headers of the core name no library of the outside."""
import re

import tree

WHY = ("folders are stages that meet in the record; an include that points up makes two stages one, and a "
       "JSON or test type in a core header spreads to every file that includes it")
MAY_INCLUDE = {
    "core": {"core"},
    "platform": {"core", "platform"},
    "gguf": {"core", "gguf"},
    "session": {"core", "platform", "gguf", "session"},
    "selftest": {"core", "platform", "session", "selftest"},
    "judge": {"core", "platform", "judge"},
    "report": {"core", "report"},
    "cli": {"core", "platform", "gguf", "session", "selftest", "judge", "report", "cli"},
}
FOREIGN_IN_CORE = re.compile(r"#include\s*<(nlohmann|gtest|gmock|cuda|CLI|spdlog)[/_.]")

root = tree.root_from_arguments()
findings = []
for path, text in tree.code(root):
    if path.parts[0] != "src" or len(path.parts) < 3:
        continue
    folder = path.parts[1]
    if folder not in MAY_INCLUDE:
        findings.append(f"{path}: {folder} has no place in the pipeline: give it one in tools/lint/include_direction.py")
        continue
    for number, line in enumerate(text.splitlines(), 1):
        include = re.match(r'#include\s*"([^"/]+)/', line)
        if include and include[1] in MAY_INCLUDE and include[1] not in MAY_INCLUDE[folder]:
            findings.append(f"{path}:{number}: {folder} must not include {include[1]}")
        if folder == "core" and path.suffix == ".h" and FOREIGN_IN_CORE.search(line):
            findings.append(f"{path}:{number}: a core header must not include {line.split('<')[1].rstrip('>')}")
tree.finish(findings, WHY)
