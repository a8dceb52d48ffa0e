#!/usr/bin/env python3
"""No path of one person's machine and no host of a package registry stands in the tree."""
import pathlib
import re

import tree

WHY = ("a path that exists on one machine works nowhere else, and packages come through the clients' own "
       "configuration so that mirrors and proxies keep working")
# An absolute path is somebody's own when it lies in a home, or in a top folder that this machine has and a
# plain Linux has not. JSON pointers and paths below a variable look the same and name no such folder.
SYSTEM = set("bin boot dev etc lib lib32 lib64 libx32 media mnt opt proc run sbin srv sys tmp usr var".split())
HOMES = {"home", "root", "Users"}
ABSOLUTE = re.compile(r"(?<![\w.$}/)*~>-])/([A-Za-z][\w.-]*)/[\w.-]+")


def is_somebodys(folder: str) -> bool:
    return folder in HOMES or (folder not in SYSTEM and pathlib.Path("/", folder).is_dir())


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
            if is_somebodys(found[1]):
                findings.append(f"{path}:{number}: {found[0]} is a path of one machine")
        for found in HOST.finditer(line):
            findings.append(f"{path}:{number}: {found[0]} names a host")
tree.finish(findings, WHY)
