#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""short_pocl.py ROOT FOLDER: lists the OpenCL drivers of /etc/OpenCL/vendors in FOLDER/vendors,
PoCL with a shorter header of built-in functions. PoCL reads all 17,500 lines of its own for every
program, twice: a fifth of the time for building a program and its kernels, and a third of a small
run with kernels that are kept. The shorter one has every form of each function whose name stands in
the sources of gpu, kernels, or tests of gpu.

PoCL looks for its files beside its library, so that links stand for all others. Where its files lie
elsewhere, it is listed as it is."""
import pathlib
import re
import sys

VENDORS = pathlib.Path("/etc/OpenCL/vendors")
HEADER = "include/opencl-c.h"
LIBRARIES = sorted(pathlib.Path("/usr/lib").glob("*-linux-gnu/libpocl.so.2"))


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def link(path, target):
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_symlink():
        path.symlink_to(target)


def shorter(header, words):
    """Returns a header's directives, and its declarations of functions named in `words`."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", header, flags=re.S).replace("\\\n", " ")
    kept, declaration = [], ""
    for line in text.splitlines():
        if line.lstrip().startswith("#"):
            kept.append(line)
            continue
        declaration += f" {line.strip()}"
        if ";" not in line:
            continue
        plain = re.sub(r"__attribute__\s*\(\(.*?\)\)", "", declaration)
        name = re.search(r"(\w+)\s*\(", plain)
        if name is None or name[1] in words:
            kept.append(declaration.strip())
        declaration = ""
    return "\n".join(kept) + "\n"


def make_short_pocl(root, folder, library):
    files = library.parents[2] / "share/pocl"
    own = folder / "usr/share/pocl"
    for path in [*files.glob("*.bc"), *files.glob("include/*")]:
        if path != files / HEADER:
            link(own / path.relative_to(files), path)
    words = set()
    for layer in ("gpu", "tests/gpu", "tests/support"):
        for path in (root / layer).rglob("*.*"):
            if path.suffix in (".cl", ".clh", ".cpp", ".hpp"):
                words |= set(re.findall(r"\w+", path.read_text(encoding="utf-8")))
    write(own / HEADER, shorter((files / HEADER).read_text(encoding="utf-8"), words))
    own_library = folder / "usr/lib" / library.parent.name / library.name
    link(own_library, library)
    link(own_library.parent / "pocl", library.parent / "pocl")
    return own_library


def main():
    root, folder = map(pathlib.Path, sys.argv[1:])
    for vendor in VENDORS.glob("*.icd"):
        driver = vendor.read_text(encoding="utf-8")
        if "libpocl" in driver and len(LIBRARIES) == 1 and \
                (LIBRARIES[0].parents[2] / "share/pocl" / HEADER).is_file():
            driver = f"{make_short_pocl(root, folder, LIBRARIES[0])}\n"
        write(folder / "vendors" / vendor.name, driver)


if __name__ == "__main__":
    main()
