#!/usr/bin/env python3
"""No path of one person's machine and no host of a package registry stands in the tree."""
import re

import tree

WHY = ("a path that exists on one machine works nowhere else, and packages come through the clients' own "
       "configuration so that mirrors and proxies keep working")
# Folders that every Linux has. Anything else absolute is somebody's own.
# Examples in tests and texts may use the few plain words at the end.
SYSTEM = "bin|dev|etc|lib|lib64|opt|proc|run|sbin|sys|tmp|usr|var|elsewhere|nowhere|path|src|models"
ABSOLUTE = re.compile(r"(?<![\w.$}/)*~>-])/(?!(?:%s)\b)([a-z][\w.-]*)/[\w.-]+" % SYSTEM)
HOST = re.compile(r"https?://(?!json-schema\.org/|www\.apache\.org/|127\.0\.0\.1)[\w.-]+")
SUFFIXES = tree.CODE + (".py", ".sh", ".cmake", ".txt", ".json", "")

root = tree.root_from_arguments()
findings = []
for path, text in tree.files(root):
    if path.name == "LICENSE":
        continue
    is_program = path.suffix in SUFFIXES
    for number, line in enumerate(text.splitlines(), 1):
        for found in ABSOLUTE.finditer(line) if is_program else ():
            findings.append(f"{path}:{number}: {found[0]} is a path of one machine")
        for found in HOST.finditer(line):
            findings.append(f"{path}:{number}: {found[0]} names a host")
tree.finish(findings, WHY)
