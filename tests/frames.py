#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""frames.py PROGRAM [STOP]: the functions of ours between run_factor and the first multiplication.

PROGRAM is a debug build of qrtool (-O0 -g, in which nothing is inlined). It factors a small batch
under gdb, which stops in the first function whose name ends in STOP: by default the kernel that
computes a column's reflector on the CPU; give clEnqueueNDRangeKernel for the first launch on a
device, with `--backend opencl` behind it. Functions of the standard library do not count. A stack
is that of one thread, so that the stack of the thread that has started a stage is added to it."""
import re
import subprocess
import sys
import tempfile


def functions(program, stop, arguments):
    """The functions of the stack, the innermost first."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, "generate", "--shape", "8x24x12", f"{folder}/in.npy"], check=True,
                       stdout=subprocess.DEVNULL)
        script = ["set breakpoint pending on", "set pagination off", "set print thread-events off",
                  "set print frame-arguments none", f"rbreak {stop}" if "(" in stop else
                  f"break {stop}", "run", "backtrace", "kill"]
        options = [part for line in script for part in ("-ex", line)]
        command = ["gdb", "--batch", *options, "--args", program, "factor", f"{folder}/in.npy",
                   f"{folder}/out.npz", *arguments]
        text = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return re.findall(r"^#\d+ +(?:0x[0-9a-f]+ in )?(.*?) \(", text, re.M)


def main():
    program = sys.argv[1]
    stop = sys.argv[2] if len(sys.argv) > 2 else "householder"
    found = functions(program, stop, sys.argv[3:] or ["--backend", "cpu", "--threads", "1"])
    ours = [name for name in found if not name.startswith(("std::", "operator", "__"))]
    print("\n".join(ours))
    print(len(ours), "functions of ours")


if __name__ == "__main__":
    main()
