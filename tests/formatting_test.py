#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""formatting_test.py ROOT CLANG_FORMAT: all C and C++ files are as clang-format 14 writes them, and
lines of OpenCL C and Python have at most 100 columns."""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

FOLDERS = ("app", "core", "gpu", "io", "samples", "tests")
FORMATTED = {".cpp", ".hpp", ".c", ".h"}
WITHIN_COLUMNS = {".cl", ".clh", ".py"}
MOST_COLUMNS = 100
VERSION = 14  # others break some lines elsewhere
FILES_AT_A_TIME = 40
SKIPPED = 77


def unformatted(clang_format, files):
    done = subprocess.run([clang_format, "--dry-run", "-Werror", *files], capture_output=True,
                          text=True, check=False)
    places = re.findall(r"^(\S+?:\d+):\d+: error", done.stderr, re.M)
    if done.returncode != 0 and not places:
        places = [done.stderr.strip()]
    return [f"{place}: clang-format -i changes this line" for place in dict.fromkeys(places)]


def main():
    root, clang_format = pathlib.Path(sys.argv[1]), sys.argv[2]
    version = subprocess.run([clang_format, "--version"], capture_output=True, text=True,
                             check=True).stdout
    if f"version {VERSION}." not in version:
        print(f"needs clang-format {VERSION}, this is {version.strip()}")
        return SKIPPED
    files = sorted(path for folder in FOLDERS for path in (root / folder).rglob("*"))
    faults = []
    for path in files:
        if path.suffix in WITHIN_COLUMNS:
            faults += [f"{path}:{i}: more than {MOST_COLUMNS} columns"
                       for i, line in enumerate(path.read_text().splitlines(), 1)
                       if len(line) > MOST_COLUMNS]
    formatted = [str(path) for path in files if path.suffix in FORMATTED]
    assert len(formatted) > 700, "the folders are not where they were"
    parts = [formatted[i:i + FILES_AT_A_TIME] for i in range(0, len(formatted), FILES_AT_A_TIME)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for found in pool.map(lambda part: unformatted(clang_format, part), parts):
            faults += found
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
