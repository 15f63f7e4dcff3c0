#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""examples_test.py QRTOOL ROOT LIBRARY: runs every example of the README, the pages of the samples
and the man pages.

In Markdown: blocks fenced as `console`, where a line "$ command" is followed by its output, and
blocks fenced as `python`, `octave` and `r`. In man pages: lines "$ command" between .EX and .EE,
and programs in C, which are built with LIBRARY and must say nothing on standard error.
One folder per document holds copies of the samples. The output shown must be the output had, apart
from numbers and times; counts of matrices must be right. A last line "$ echo $?" shows an exit
status.

A block whose program or Python module is not installed is left out, and counted as skipped. So that
the commands after it have their input, the folder holds the files of tests/data, which have the
names that the blocks write.
"""
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
# How many matrices there are, and how many of them pass or fail: these say what happened.
COUNTS = re.compile(r"(?<!\.)\b(?:\d[\d,]* of \d[\d,]*(?:x\d+)?|all \d[\d,]* pass|verified \d[\d,]*"
                    r"|\d[\d,]* (?:above the bar|not finite|overflow in "
                    r"R|unchecked|matri(?:x|ces)|more))\b")
# Units move with the machine's speed, and the processor's name is its own.
UNIT = re.compile(r"# (?:us|ms|s|B|KiB|MiB|GiB)\b")


def mask(line):
    """Numbers become #, but for counts of matrices, whose digits become letters."""
    letters = str.maketrans("0123456789", "abcdefghij")
    counted = COUNTS.sub(lambda found: found.group().translate(letters), line)
    return re.sub(r"\s+", " ", UNIT.sub("# U", NUMBER.sub("#", counted))).strip()


def shape_of(text):
    lines = [mask(line) for line in text.splitlines()]
    return [re.sub(r"threads?", "threads", line) for line in lines if line]


def markdown_blocks(text):
    for match in re.finditer(r"^```(console|python|octave|r)\n(.*?)^```", text, re.M | re.S):
        yield match.group(1), match.group(2)


def console_steps(block):
    """(command, expected output) pairs."""
    steps = []
    for line in block.splitlines():
        if line.startswith("$ "):
            steps.append([line[2:], ""])
        elif steps:
            steps[-1][1] += line + "\n"
    return steps


# The commands that run a block of a language. MATLAB and Julia cannot be had here.
PROGRAMS = {"python": [sys.executable, "-c"], "octave": ["octave-cli", "--no-gui", "--norc",
                                                         "--eval"],
            "r": ["Rscript", "-e"]}


def is_installed(kind, block):
    if kind != "python":
        return shutil.which(PROGRAMS[kind][0]) is not None
    modules = re.findall(r"^import (\w+)", block, re.M)
    return all(importlib.util.find_spec(module) for module in modules)


class Runner:
    def __init__(self, qrtool, root, library):
        self.folder = tempfile.mkdtemp(prefix="qrtool-examples-")
        self.failures = []
        self.count = self.left_out = 0
        for sample in [*(root / "tests/data").iterdir(), *(root / "samples").iterdir()]:
            if sample.suffix in (".h5", ".csv", ".mat", ".mtx", ".sh"):
                shutil.copy(sample, self.folder)
        folder = pathlib.Path(qrtool).resolve().parent
        self.environment = dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}",
                                PYTHONPATH=str(root / "app/python"), QRTOOL_LIBRARY=library)

    def shell(self, command):
        self.count += 1
        return subprocess.run(
            ["sh", "-c", command], cwd=self.folder, env=self.environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, check=False,
        )

    def console(self, where, block):
        status = 0
        for command, expected in console_steps(block):
            if command == "echo $?":
                if expected.strip() != str(status):
                    self.failures.append(f"{where}: exit status {status}, shown {expected}")
                status = 0
                continue
            if status != 0:
                self.failures.append(f"{where}: exit status {status} before: {command}")
            done = self.shell(command)
            status = done.returncode
            if expected and shape_of(done.stdout) != shape_of(expected):
                self.failures.append(f"{where}: $ {command}\nshown:\n{expected}had:\n{done.stdout}")
        if status != 0:
            self.failures.append(f"{where}: the last command ends with {status}")

    def script(self, where, kind, block):
        if not is_installed(kind, block):
            self.left_out += 1
            print(f"{where}: left out, since its program or module is not installed:\n{block}")
            return
        self.count += 1
        done = subprocess.run(
            [*PROGRAMS[kind], block], cwd=self.folder, env=self.environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, check=False,
        )
        if done.returncode != 0:
            self.failures.append(f"{where}: {kind} block\n{block}\n{done.stdout}")

    def c_program(self, where, block, header, library):
        self.count += 1
        program = os.path.join(self.folder, "program")
        steps = [["cc", "-std=c99", "-Wall", "-Werror", "-x", "c", "-", "-I", str(header.parent),
                  "-x", "none", library, "-o", program], [program]]
        for step in steps:
            done = subprocess.run(step, input=block, text=True, capture_output=True, timeout=120,
                                  check=False,
                                  env=dict(os.environ, LD_LIBRARY_PATH=os.path.dirname(library)))
            if done.returncode != 0 or done.stderr:
                self.failures.append(f"{where}: {step[0]}\n{block}\n{done.stderr}")
                return

    def close(self):
        shutil.rmtree(self.folder)


def main():
    qrtool, root, library = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
    pages = ["README.md", "samples/README.md",
             "samples/ways.md"] + [f"man/qrtool.{n}" for n in (1, 3, 5, 7)]
    failures, count, left_out = [], 0, 0
    sys.path.insert(0, str(root / "app/python"))  # so that is_installed() finds the package
    for name in pages:
        runner = Runner(qrtool, root, library)
        text = (root / name).read_text()
        if name.endswith(".md"):
            for kind, block in markdown_blocks(text):
                if kind == "console":
                    runner.console(name, block)
                else:
                    runner.script(name, kind, block)
        else:
            for block in re.findall(r"^\.EX\n(.*?)^\.EE", text, re.M | re.S):
                block = block.replace("\\-", "-").replace("\\e", "\\")
                if block.startswith("#include"):
                    runner.c_program(name, block, root / "app/capi/qrtool.h", library)
                else:
                    runner.console(name, block)
        failures += runner.failures
        count += runner.count
        left_out += runner.left_out
        runner.close()
    print("\n".join(failures))
    print(f"{count} examples run")
    if left_out > 0:
        print(f"OK (skipped={left_out})")  # as unittest says it, for tests/skipped.sh
    return 1 if failures or count < 5 else 0


if __name__ == "__main__":
    sys.exit(main())
