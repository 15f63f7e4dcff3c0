#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""frames.py PROGRAM cpu|opencl: the functions between run_factor and the first multiplication on
the CPU, or the first launch of a kernel on a device.

PROGRAM is a debug build of qrtool, in which nothing is inlined. It factors a few matrices on one
thread under gdb, which stops where the first panel is reflected, or where the driver is asked to
launch. Functions of the standard library and of the driver do not count, but lambdas do. The stack
of a thread that another function has started goes on with the stack of this function."""
import re
import subprocess
import sys
import tempfile

STOPS = {"cpu": "core/cpu/batched/panel.hpp", "opencl": "clEnqueueNDRangeKernel"}


def backtrace(program, stop, backend):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, "generate", "--shape", "8x24x12", "--precision", "double", "-q",
                        f"{folder}/in.npy"], check=True)
        lines = ["set breakpoint pending on", "set pagination off", "set print frame-arguments none",
                 stop, "run", "thread apply all backtrace", "kill"]
        options = [part for line in lines for part in ("-ex", line)]
        done = subprocess.run(
            ["gdb", "--batch", *options, "--args", program, "factor", f"{folder}/in.npy",
             f"{folder}/out.npz", "--backend", backend, "--threads", "1"],
            capture_output=True, text=True, check=False)
        return done.stdout


def ours(text):
    """The functions of each thread that are in the namespace qrtool, the innermost first."""
    for thread in re.split(r"^Thread \d+ ", text, flags=re.M)[1:]:
        names = re.findall(r"^#\d+ +(?:0x[0-9a-f]+ in )?(\S.*?) \(", thread, re.M)
        yield [name for name in names if name.startswith("qrtool::")]


def main():
    program, backend = sys.argv[1:3]
    stop = f"rbreak {STOPS['cpu']}:." if backend == "cpu" else f"break {STOPS['opencl']}"
    for names in ours(backtrace(program, stop, backend)):
        print(len(names), *names, sep="\n  ")


if __name__ == "__main__":
    main()
