#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every kernel file compiles alone, for float and for double; 77 (skipped) where there is no clang."""
import pathlib
import shutil
import subprocess
import sys


def main():
    clang = shutil.which("clang") or shutil.which("clang-14")
    if clang is None:
        print("no clang: skipped")
        return 77
    failures = 0
    files = sorted((pathlib.Path(sys.argv[1]) / "gpu/kernels").glob("*.cl"))
    for path in files:
        for real in ("float", "double"):
            done = subprocess.run(
                [clang, "-x", "cl", "-cl-std=CL1.2", "-fsyntax-only", "-Xclang", "-finclude-default-header",
                 "-Wall", "-Werror", f"-DSTORED={real}", f"-DREAL={real}", str(path)],
                capture_output=True, text=True, check=False,
            )
            if done.returncode != 0:
                failures += 1
                print(f"{path.name}, {real}:\n{done.stderr}")
    print(f"{len(files)} files")
    return 1 if failures or not files else 0


if __name__ == "__main__":
    sys.exit(main())
