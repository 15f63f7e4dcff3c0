#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""by_peers.py QRTOOL JSON [--rows N] [--groups N]: one regression for each group of a table in CSV,
with qrtool, polars_ds and polars_ols, from file to file. Needs polars, polars-ds and polars-ols.

Each program is a process of its own; its processor time and its peak of memory are those that the
system counts. The tasks: coefficients alone, and with standard errors. At the end one group of two
rows is added, which has fewer rows than coefficients."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

POLARS = """
import sys, polars as pl
{imports}
frame = pl.read_csv(sys.argv[1])
result = frame.group_by("g", maintain_order=True).agg({expression})
result.{write}(sys.argv[2])
"""
DS = ('import polars_ds as pds', 'pds.lin_reg("u", "v", target="y", add_bias=True).alias("x")')
DS_ERRORS = ('import polars_ds as pds',
             'pds.lin_reg_report("u", "v", target="y", add_bias=True).alias("x")')
OLS = ('import polars_ols',
       'pl.col("y").least_squares.ols(pl.col("u"), pl.col("v"), add_intercept=True, '
       'mode="coefficients").first().alias("x")')


def table(path, rows, groups):
    chance = np.random.default_rng(1)
    keys = chance.integers(groups, size=rows)
    a = chance.standard_normal((rows, 2))
    y = 1 + a @ [2, -1] + 0.1 * chance.standard_normal(rows)
    with open(path, "w", encoding="ascii") as file:
        file.write("g,u,v,y\n")
        for first in range(0, rows, 100000):
            some = slice(first, first + 100000)
            file.write("".join(f"k{k},{u!r},{v!r},{b!r}\n" for k, u, v, b in zip(
                keys[some].tolist(), a[some, 0].tolist(), a[some, 1].tolist(), y[some].tolist())))


def measure(command):
    start = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        errors = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = status
    if status != 0:
        print(errors.decode()[-300:], file=sys.stderr)
        return {"failed": True}
    return {"seconds": time.monotonic() - start, "cpu_seconds": usage.ru_utime + usage.ru_stime,
            "mib": usage.ru_maxrss / 1024}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("qrtool")
    parser.add_argument("json")
    parser.add_argument("--rows", type=int, default=5000000)
    parser.add_argument("--groups", type=int, default=50000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        path, out = f"{folder}/t.csv", f"{folder}/o"
        table(path, options.rows, options.groups)

        def polars(task):
            write = "write_parquet"
            return [sys.executable, "-c", POLARS.format(imports=task[0], expression=task[1],
                                                        write=write), path, out + ".parquet"]
        by = [options.qrtool, "solve", path, out + ".csv", "-f", "--response", "y", "--by", "g",
              "--intercept"]
        commands = {"qrtool, with errors, rank, R^2, condition": by,
                    "qrtool, coefficients, rank, R^2, condition": [*by, "--no-se"],
                    "qrtool, with residuals and fitted values": [*by, "--residuals", "--fitted"],
                    "polars_ds, coefficients": polars(DS),
                    "polars_ds, with errors": polars(DS_ERRORS),
                    "polars_ols, coefficients": polars(OLS)}
        for name, command in commands.items():
            runs = [measure(command) for _ in range(options.rounds)]
            found[name] = min(runs, key=lambda run: run.get("cpu_seconds", 0))
        with open(path, "a", encoding="ascii") as file:
            file.write("short,1.0,2.0,3.0\nshort,2.0,1.0,1.0\n")
        for name, command in commands.items():
            found[name]["with one short group"] = measure(command)
    pathlib.Path(options.json).write_text(json.dumps(
        {"cases": [{"rows": options.rows, "groups": options.groups, "found": found}]}),
        encoding="utf-8")
    for name, run in found.items():
        print(name, run)


if __name__ == "__main__":
    main()
