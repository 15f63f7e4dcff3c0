#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""abi_test.py LIBRARY PROGRAM ROOT [--write]: the C interface is what programs were built against.
abi.txt lists the functions of the library, and what PROGRAM (abi.c) prints of structs and enums. A
line may be added to it; one that changes or goes needs another QRTOOL_ABI. The library needs
nothing that an embedded one should not."""
import pathlib
import re
import subprocess
import sys

# HDF5, MPI, and what command lines and formats bring along.
UNWANTED = re.compile(r"hdf5|mpi|libz\b|libzip|gtest", re.I)


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def interface(library, program):
    symbols = output_of("nm", "-D", "--defined-only", "--format=posix", library).split("\n")
    names = sorted(line.split()[0] for line in symbols if line and line.split()[1] != "A")
    return "".join(f"{name}\n" for name in names) + output_of(program)


def main():
    library, program, root = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    listed = root / "tests/app/capi/abi.txt"
    found = interface(library, program)
    if "--write" in sys.argv:
        listed.write_text(found)
        return 0
    wrong = []
    kept, now = listed.read_text().splitlines(), found.splitlines()
    wrong += [f"abi.txt has '{line}', the library has not" for line in kept if line not in now]
    wrong += [f"the library has '{line}', abi.txt has not" for line in now if line not in kept]
    members = set(re.findall(r"^(\w+\.\w+) ", found, re.M))
    header = (root / "app/capi/qrtool.h").read_text()
    header = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
    functions = re.findall(r"\b(qrtool_\w+)\(", header)
    exported = [line.split("@")[0] for line in now if "." not in line and " " not in line]
    if sorted(functions) != sorted(exported):
        wrong.append(f"qrtool.h declares {sorted(functions)}, the library shows {exported}")
    for body, struct in re.findall(r"typedef struct \w+ \{(.*?)\} (\w+);", header, re.S):
        for declaration in body.split(";"):
            of_members = re.sub(r"\)\s*\(.*\)", ")", declaration.strip())
            names = re.findall(r"\(\*(\w+)\)|(\w+)\s*(?=,|$)", of_members)
            for name in (pointer or plain for pointer, plain in names):
                if f"{struct}.{name}" not in members:
                    wrong.append(f"abi.c does not print {struct}.{name}")
    dynamic = output_of("readelf", "-d", library)
    if f"[libqrtool.so.{re.search(r'QRTOOL_ABI (.*)', found).group(1)}]" not in dynamic:
        wrong.append("the soname is not that of QRTOOL_ABI")
    needed = re.findall(r"NEEDED.*\[(.*)\]", dynamic)
    wrong += [f"the library needs {name}" for name in needed if UNWANTED.search(name)]
    print("\n".join(wrong) or f"as listed; needs {', '.join(needed)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
