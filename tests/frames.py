#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""frames.py PROGRAM cpu|opencl: the functions from run_factor to the one that multiplies first on
the CPU, or that launches the first kernel. PROGRAM is a debug build, whose kernels have frames of
inlined functions, too; it factors a few matrices on one thread under gdb. Lambdas count, and
functions of the standard library do not."""
import pathlib
import re
import subprocess
import sys
import tempfile

PANEL = "core/cpu/batched/panel.hpp"
FIRST_PRODUCT = "tail = sum_of_squares<0>()"


def stop_of(backend):
    if backend == "opencl":
        return "qrtool::Launcher::launch"
    lines = (pathlib.Path(__file__).parent.parent / PANEL).read_text().splitlines()
    return f"{PANEL}:{next(i for i, line in enumerate(lines, 1) if FIRST_PRODUCT in line)}"


def main():
    program, backend = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as folder:
        data = f"{folder}/in.npy"
        subprocess.run([program, "generate", "--shape", "8x24x12", "-q", data], check=True)
        steps = ["set breakpoint pending on", f"break {stop_of(backend)}", "run", "backtrace"]
        command = ["gdb", "--batch", *(part for step in steps for part in ("-ex", step)), "--args",
                   program, "factor", data, f"{folder}/out.npz", "--threads", "1", "--backend",
                   backend]
        text = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    names = re.findall(r"^#\d+ +(?:0x[0-9a-f]+ in )?((?:qrtool::|operator\(\)).*?) \(", text, re.M)
    ends = [i for i, name in enumerate(names) if name.startswith("qrtool::run_factor")]
    names = names[: ends[0] + 1] if ends else []
    print(*reversed(names), f"{len(names)} functions", sep="\n")


if __name__ == "__main__":
    main()
