#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles every kernel file separately, for float and for double, with the portable body, with
that of cl_khr_subgroup_shuffle and with NVIDIA's. Returns 77 (skipped) without clang."""
import itertools
import pathlib
import shutil
import subprocess
import sys

BODIES = {
    "portable": [],
    "NVIDIA": ["--target=nvptx64", "-fgnu-keywords", "-DSUB_GROUP_BODY=1", "-DMMA=1",
               "-DGRAM_BODY=2"],
}
# clang knows the functions of the two extensions, but has no target that has them.
BODIES["sub-groups"] = ["-DSUB_GROUP_BODY=2", "-Dcl_khr_subgroups", "-Dcl_khr_subgroup_shuffle",
                        "-Wno-ignored-pragmas"]
BODIES["halves"] = [*BODIES["NVIDIA"], "-DPRODUCT_BODY=1", "-DB_ALIGNMENT=4"]
BODIES["floats"] = [*BODIES["NVIDIA"], "-DPRODUCT_BODY=5", "-DB_ALIGNMENT=4"]
BODIES["portable floats"] = ["-DPRODUCT_BODY=5"]
NVIDIA_ALONE = {"check_rows.cl", "gram_tiles.cl"}
# Bodies of products that exist only for float32.
SINGLES = {"halves", "floats", "portable floats"}
PRODUCTS = {"gemm.cl", "large.cl"}


def main():
    clang = shutil.which("clang") or shutil.which("clang-14")
    if clang is None:
        print("no clang: skipped")
        return 77
    failures = 0
    root = pathlib.Path(sys.argv[1])
    files = sorted((root / "gpu").rglob("*.cl"))
    for path in files:
        bodies = ["NVIDIA"] if path.name in NVIDIA_ALONE else BODIES
        for real, body in itertools.product(("float", "double"), bodies):
            if body in SINGLES and (path.name not in PRODUCTS or real == "double"):
                continue
            done = subprocess.run(
                [clang, "-x", "cl", "-cl-std=CL1.2", "-fsyntax-only", "-Xclang",
                 "-finclude-default-header",
                 "-Wall", "-Werror", f"-I{root}", f"-DSTORED={real}", f"-DREAL={real}",
                 *BODIES[body], str(path)],
                capture_output=True, text=True, check=False,
            )
            if done.returncode != 0:
                failures += 1
                print(f"{path.name}, {real}, {body}:\n{done.stderr}")
    print(f"{len(files)} files")
    return 1 if failures or not files else 0


if __name__ == "__main__":
    sys.exit(main())
