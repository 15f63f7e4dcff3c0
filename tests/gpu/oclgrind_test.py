#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks for races and accesses out of bounds in every variant with oclgrind. oclgrind always
exits with 0, so its log must be empty, and the factors must be right. Every variant of the program
must have shapes here. Without --all a run takes the first shape of each variant, in one mode and
one type, the kernels of the check for three of the variants, and three systems, each in one type.
The option
--uninitialized is not used, because version 21.10 itself crashes on structs in private memory."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

import h5py

QRTOOL = sys.argv[1]
ALL = sys.argv[2:] == ["--all"]
SHAPES = {
    "opencl/gram": ["2x16x16", "3x37x13", "2x40x33"],
    "opencl/gram_group": ["1x66x65"],
    "opencl/gram_tiles": ["2x20x10", "1x129x129"],
    "opencl/small": ["3x5x3", "2x16x16", "2x9x20"],
    "opencl/blocked": ["1x33x34"],
    "opencl/tall": ["1x530x3"],
    "opencl/large": ["2x5x3", "1x20x18", "1x6x20", "1x36x34"],
    "opencl/textbook": ["2x6x6"],
    "opencl/complex": ["2x9x6", "1x5x8", "1x70x30", "1x1100x3"],
    "opencl/leading": ["2x17x90", "1x35x50", "3x6x20"],
    "opencl/reconstruct": ["2x18x17", "1x40x33", "1x140x129"],
    "opencl/tiny": ["3x5x3", "65x4x4", "2x3x7"],
    "opencl/vector": ["3x5x3", "17x9x12", "1x33x18"],
}
# Of rank 1, for the kernels of further passes.
REFUSED = [("opencl/tall", "2x530x7", "single", "reduced"),
           ("opencl/gram_group", "1x257x65", "double", "reduced")]
# On a device without float64, with the check.
PAIRS = [("opencl/tall", "1x530x20", "reduced"), ("opencl/large", "1x36x34", "raw")]
# The variant that factors A, or none for normal equations.
SYSTEMS = [("opencl/small", "3x7x3"), (None, "3x8x5"), ("opencl/small", "3x3x7"),
           (None, "3x30x9"), (None, "1x40x33"),
           ("opencl/small", "2x40x17"), ("opencl/small", "1x36x33"), ("opencl/tall", "1x4100x3")]
# Groups of settle_gram, begin_series and turn_factor read numbers, without using them, that others
# set at the same time, which oclgrind reports.
REPORTED = {"opencl/gram_twice", "opencl/gram_passes"}
# The kernels of the check take most of a run, and are the same for all variants of one form of Q
# and one kind of numbers.
CHECKED = {"opencl/small", "opencl/reconstruct", "opencl/complex"}
PRECISIONS = {"opencl/gram": ("single",), "opencl/gram_tiles": ("single",)}
MODES = {"opencl/gram": ("reduced", "r"), "opencl/gram_group": ("reduced",),
         "opencl/gram_tiles": ("reduced",), "opencl/textbook": ("reduced",),
         "opencl/tall": ("reduced", "r"),
         "opencl/vector": ("reduced", "r"), "opencl/tiny": ("reduced", "r"),
         "opencl/leading": ("reduced", "r"), "opencl/reconstruct": ("raw",)}


def run(command, status=0, pretend=None):
    environment = {**os.environ, **({"QRTOOL_PRETEND": pretend} if pretend else {})}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False,
                          env=environment)
    assert done.returncode == status, (command, done.returncode, done.stdout, done.stderr)
    return done.stdout


def variants():
    """The names of the OpenCL variants, from the program."""
    devices = json.loads(run([QRTOOL, "devices", "--json"]))
    return {variant["name"] for place in devices["places"] for variant in place["variants"]
            if variant["name"].startswith("opencl/")}


def without_all(cases):
    """All of the cases with --all, else the first."""
    return cases if ALL else cases[:1]


def check(folder, variant, shape, precision, mode, kind="gauss", pretend=None):
    a, q, log = (os.path.join(folder, name) for name in ("a.h5", "q.h5", "log"))
    run([QRTOOL, "generate", "--shape", shape, "--precision", precision, "--kind", kind, a,
         "--force", "-q", *(["--complex"] if variant == "opencl/complex" else [])])
    if os.path.exists(log):
        os.remove(log)
    run(["oclgrind", "--data-races", "--local-mem-size", "131072", "--check-api", "--log", log,
         QRTOOL, "factor", a, q, "--variant", variant, "--mode", mode, "--force", "-q",
         *([] if ALL or pretend or variant in CHECKED else ["--check", "none"])], pretend=pretend)
    run([QRTOOL, "verify", a, q])
    with h5py.File(q) as file:
        assert kind == "gauss" or "further passes" in str(file.attrs["way"]), file.attrs["way"]
    with open(log) as file:
        found = file.read()
    if found:
        print(f"{variant} {shape} {precision} {mode}:\n{found[:2000]}")
    return not found


def check_solve(folder, variant, shape, precision):
    """R's kernels are checked above, those of solve here: with two right sides by a variant, or
    with one by normal equations."""
    a, b, x, log = (os.path.join(folder, name) for name in ("a.h5", "b.h5", "x.h5", "log"))
    count, m, n = shape.split("x")
    run([QRTOOL, "generate", "--shape", shape, "--precision", precision, a, "--force", "-q"])
    run([QRTOOL, "generate", "--shape", f"{count}x{m}x{2 if variant else 1}", "--precision",
         precision, "--seed", "1", b, "--force", "-q"])
    if os.path.exists(log):
        os.remove(log)
    run(["oclgrind", "--data-races", "--local-mem-size", "131072", "--check-api", "--log", log,
         QRTOOL, "solve", a, b, x, *(["--variant", variant] if variant
                                     else ["--backend", "opencl"]), "--force", "-q"])
    with h5py.File(x) as file:
        assert file.attrs["backend"] == "opencl"
        assert file.attrs["variant"] == (variant or "normal equations")
    run([QRTOOL, "verify", a, b, x])
    with open(log) as file:
        found = file.read()
    if found:
        print(f"solve {shape} {precision}:\n{found[:2000]}")
    return not found


def check_weights(folder, precision):
    """Right sides of one A with weights of their own and a ridge: 5 of 9 x 3, past the end of every
    tile."""
    a, b, w, x, log = (os.path.join(folder, name) for name in
                       ("one.h5", "sides.h5", "weights.h5", "x.h5", "log"))
    run([QRTOOL, "generate", "--shape", "9x3", "--precision", precision, a, "--force", "-q"])
    run([QRTOOL, "generate", "--shape", "5x9", "--precision", precision, b, "--force", "-q"])
    with h5py.File(b) as sides, h5py.File(w, "w") as weights:
        (name,) = sides
        weights[name] = abs(sides[name][...]) + 1
    if os.path.exists(log):
        os.remove(log)
    run(["oclgrind", "--data-races", "--local-mem-size", "131072", "--check-api", "--log", log,
         QRTOOL, "solve", a, b, x, "--weights", w, "--ridge", "1", "--backend",
         "opencl", "--force", "-q"])
    with h5py.File(x) as file:
        assert file.attrs["backend"] == "opencl" and file.attrs["variant"] == "normal equations"
    with open(log) as file:
        found = file.read()
    if found:
        print(f"weights {precision}:\n{found[:2000]}")
    return not found


def main():
    names = variants()
    missing = sorted(names - SHAPES.keys() - REPORTED)
    unknown = sorted((SHAPES.keys() | REPORTED) - names)
    if missing or unknown:
        print(f"no shapes for {missing}; no such variants: {unknown}")
        return 1
    folder = tempfile.mkdtemp(prefix="qrtool-oclgrind-")
    silent = [
        check(folder, variant, shape, precision, mode)
        for variant, shapes in SHAPES.items()
        for shape in without_all(shapes)
        for precision in without_all(PRECISIONS.get(variant, ("single", "double")))
        for mode in without_all(MODES.get(variant, ("reduced", "raw")))
    ]
    silent += [check(folder, *case, kind="constant") for case in REFUSED]
    silent += [check(folder, variant, shape, "single", mode, pretend="no-float64")
               for variant, shape, mode in PAIRS]
    types = ("single", "double")
    silent += [check_solve(folder, variant, shape, precision)
               for number, (variant, shape) in enumerate(SYSTEMS if ALL else SYSTEMS[:3])
               for precision in (types if ALL else types[number % 2:][:1])]
    silent += [check_weights(folder, precision) for precision in without_all(types)]
    shutil.rmtree(folder)
    print(f"{len(silent)} runs")
    return 0 if all(silent) else 1


if __name__ == "__main__":
    sys.exit(main())
