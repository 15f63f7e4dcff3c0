#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles every kernel file as the drivers of several devices would: with the version of OpenCL C
in which gpu/host/probe.cpp chooses each body, and for a target of clang that has what the body
needs. What a target does not have must not compile: the probe program then keeps the body away."""
import itertools
import pathlib
import shutil
import subprocess
import sys

NVIDIA = ["-cl-std=CL1.2", "--target=nvptx64", "-fgnu-keywords", "-DSUB_GROUP_BODY=1", "-DMMA=1",
          "-DGRAM_BODY=2"]
NO_FLOAT64 = ["-cl-std=CL1.2", "--target=spir64", "-DHAS_FLOAT64=0", "-Xclang",
              "-cl-ext=-cl_khr_fp64,-__opencl_c_fp64"]
# Files whose GRAM_BODY decides on MMA, which the host does not give then.
SUMS = "NVIDIA, as the sums say"
NONE = "no float64"
BODIES = {
    "portable": ["-cl-std=CL1.2"],
    "sub-groups, 2.0": ["-cl-std=CL2.0", "--target=spir64", "-DSUB_GROUP_BODY=2"],
    "sub-groups, 3.0": ["-cl-std=CL3.0", "--target=spir64", "-DSUB_GROUP_BODY=2"],
    "NVIDIA": NVIDIA,
    "NVIDIA, 8.0": [*NVIDIA, "-DFLOAT64_BODY=1"],
    "NVIDIA, plain": [*NVIDIA, "-DFLOAT64_BODY=0"],
    SUMS: [option for option in NVIDIA if option != "-DMMA=1"],
    NONE: [*NO_FLOAT64, "-w"],  # constants of REAL are written in float64
    "halves": [*NVIDIA, "-DPRODUCT_BODY=1", "-DB_ALIGNMENT=4"],
    "floats": [*NVIDIA, "-DPRODUCT_BODY=5", "-DB_ALIGNMENT=4"],
    "portable floats": ["-cl-std=CL1.2", "-DPRODUCT_BODY=5"],
}
# Bodies of products that exist only for float32, and files that have them.
PRODUCTS = {"halves", "floats", "portable floats"}
# Choices of parameters, beside the usual ones, that give an array of a work-group no entry.
EMPTY = {"measures.cl": ["-DTRIANGLE=0", "-DCOLUMNS=300", "-DTEAM=64", "-DTEAMS=1"]}
# The kernels of the check for complex matrices.
COMPLEX = {"check.cl": ["-DELEMENT_PARTS=2", "-DVECTOR=2"],
           "check_rows.cl": ["-DELEMENT_PARTS=2", "-DVECTOR=2"],
           "gram_group.cl": ["-DELEMENT_PARTS=2", "-DVECTOR=2"],
           "gram.cl": ["-DELEMENT_PARTS=2"],
           "further_passes.cl": ["-DELEMENT_PARTS=2", "-DVECTOR=2"],
           "refused.cl": ["-DELEMENT_PARTS=2"]}
# Those that a device with slow float64 builds with pairs of floats.
PAIRS = {name: ["-DWIDE_PAIRS=1"] for name in ("check.cl", "large.cl", "tall.cl")}
# Those that a run builds once more for scaled columns, and for refused matrices.
MORE = {"gram.cl": ["-DSCALED=1", "-DREFUSED=1"],
        "gram_group.cl": ["-DSCALED=1", "-DREFUSED=1"]}
# On GPUs these run by warps of 32 work-items, and on CPUs without sub-groups (registry.cpp).
BY_WARPS = {"further_passes.cl", "gram.cl", "gram_group.cl", "gram_tiles.cl", "gram_twice.cl",
            "leading.cl", "normal_group.cl", "normal_tile.cl", "reconstruct.cl"}
NVIDIA_ALONE = {"check_rows.cl", "gram_tiles.cl"}


def bodies_of(root, path, real):
    has_products = path.name == "gemm.cl" or "#include \"gpu/products/gemm.cl\"" in path.read_text()
    for name in BODIES:
        if name in PRODUCTS and (real == "double" or not has_products):
            continue
        if name == SUMS and "GRAM_BODY" not in path.read_text():
            continue
        if path.name in NVIDIA_ALONE and not name.startswith("NVIDIA"):
            continue
        if path.name in BY_WARPS and name.startswith("sub-groups"):
            continue
        if name == NONE and (real == "double" or not needs_no_float64(root, path)):
            continue
        yield name


def needs_no_float64(root, path):
    """Variants that say so to general_objection(), the checks, the checksums, and the probe."""
    host = path.with_suffix(".cpp")
    is_variant = path.relative_to(root).parts[1] in ("composed", "gram", "reflectors")
    return path.name in {"sums.cl", "probe.cl", "check.cl", "range.cl"} or (
        is_variant and "general_objection(p, limits, p.type)" in host.read_text())


def choices_of(path, name, real):
    """The options of parameters with which a file is compiled for a body."""
    yield []
    if name == "portable" and path.name in EMPTY:
        yield EMPTY[path.name]
    if path.name in COMPLEX and name != NONE:
        yield COMPLEX[path.name]
    if path.name == "check.cl" and name == NONE:
        yield ["-DFACTOR=wide"]  # for factors that the check forms itself
    if path.name == "tall.cl" and name == NONE:
        yield ["-DGRAM_BODY=0"]  # for a second try
    if name == "portable" and real == "float" and path.name in PAIRS:
        yield PAIRS[path.name]
    for option in MORE.get(path.name, []):
        yield [option]


def compile_with(clang, root, path, options):
    return subprocess.run(
        [clang, "-x", "cl", "-fsyntax-only", "-Xclang", "-finclude-default-header", "-Wall",
         "-Wzero-length-array", "-Werror", f"-I{root}", *options, str(path)],
        capture_output=True, text=True, check=False)


def main():
    root = pathlib.Path(sys.argv[1])
    clang = shutil.which(sys.argv[2])
    files = sorted((root / "gpu").rglob("*.cl"))
    failures = [] if files else ["no kernel files"]
    compiled = {name: 0 for name in BODIES}
    for path, real in itertools.product(files, ("float", "double")):
        for name in bodies_of(root, path, real):
            compiled[name] += 1
            types = [f"-DSTORED={real}"]
            if path.parent.name != "check":  # which sets REAL itself
                types.append(f"-DREAL={real}")
            for more in choices_of(path, name, real):
                done = compile_with(clang, root, path, [*types, *BODIES[name], *more])
                if done.returncode != 0:
                    failures.append(f"{path.name}, {real}, {name} {more}:\n{done.stderr}")
    named = EMPTY.keys() | COMPLEX.keys()
    failures += [f"there is no {name}" for name in named - {path.name for path in files}]
    failures += [f"no file has the body {name}" for name, count in compiled.items() if count == 0]
    # Shuffles are not there in OpenCL C 1.2, nor on a target without the extension.
    probe = root / "gpu/host/probe.cl"
    for options in (["-cl-std=CL1.2", "--target=spir64"], ["-cl-std=CL2.0"]):
        if compile_with(clang, root, probe, [*options, "-DSUB_GROUP_BODY=2"]).returncode == 0:
            failures.append(f"the probe compiles with {options}")
    print("\n".join(failures) or f"{sum(compiled.values())} compiled of {len(files)} files")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
