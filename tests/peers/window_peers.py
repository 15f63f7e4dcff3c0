#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""window_peers.py QRTOOL JSON [--rows N] [--offsets X,...]: regressions over the last 60 rows, and
over all rows so far, with qrtool, RollingOLS of statsmodels and polars_ols. Needs statsmodels,
polars, polars-ols.

y = 1 + 2 u + 3 v + 0.1 noise, where the columns u and v are noise around an offset. Of the last 100
windows: the largest error of the coefficients of u and v beside their exact values, which are found
in rational arithmetic, and the processor time of each program from NumPy's arrays to NumPy's
arrays; those of qrtool go through files."""
import argparse
import json
import os
import pathlib
import subprocess
import tempfile
import time
from fractions import Fraction

import h5py
import numpy as np

WINDOW, LAST = 60, 100


def solved(g):
    """x of the normal equations with integers, rounded once."""
    n = len(g)
    g = [[Fraction(x) for x in row] for row in g]
    for i in range(n):
        g[i] = [x / g[i][i] for x in g[i]]
        for k in range(n):
            if k != i:
                g[k] = [x - g[k][i] * y for x, y in zip(g[k], g[i])]
    return [float(row[n]) for row in g]


def exact(rows, window):
    """Of the last windows. Each number is an integer over 2^40."""
    whole = [[int(x * 2.0 ** 40) for x in row] for row in rows.tolist()]
    n, m = rows.shape[1] - 1, len(rows)
    g = [[0] * (n + 1) for _ in range(n)]

    def add(row, sign):
        for i in range(n):
            for j in range(n + 1):
                g[i][j] += sign * row[i] * row[j]
    found = []
    for k in range(0 if window is None else m - LAST - window, m):
        add(whole[k], 1)
        if window is not None and k - window >= m - LAST - window:
            add(whole[k - window], -1)
        if k >= m - LAST:
            found.append(solved(g))
    return np.array(found)


def by_qrtool(tool):
    def run(a, b, window):
        np.save("a.npy", a)
        np.save("b.npy", b)
        subprocess.run([tool, "solve", "a.npy", "b.npy", "x.h5", "-f", "-q", "--window",
                        str(window or "expanding")], check=True)
        with h5py.File("x.h5") as file:
            return file["X"][-LAST:]
    return run


def by_statsmodels(a, b, window):
    from statsmodels.regression.rolling import RollingOLS
    more = {"window": window} if window else {"window": len(b), "min_nobs": 10, "expanding": True}
    return RollingOLS(b, a, **more).fit(params_only=True).params[-LAST:]


def by_polars(a, b, window):
    import polars as pl
    import polars_ols  # noqa: F401 adds least_squares
    names = [f"x{j}" for j in range(a.shape[1])]
    frame = pl.DataFrame({**dict(zip(names, a.T)), "y": b})
    of, columns = pl.col("y").least_squares, [pl.col(name) for name in names]
    each = of.rolling_ols(*columns, window_size=window, mode="coefficients") if window else \
        of.expanding_ols(*columns, mode="coefficients")
    found = frame.select(each.alias("x"))["x"].struct.unnest()
    return found.tail(LAST).to_numpy()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("qrtool")
    parser.add_argument("json")
    parser.add_argument("--rows", type=int, default=1000000)
    parser.add_argument("--offsets", default="1000000")
    options = parser.parse_args()
    tool = os.path.abspath(options.qrtool)
    peers = {"qrtool": by_qrtool(tool), "RollingOLS": by_statsmodels, "polars_ols": by_polars}
    cases, out = [], pathlib.Path(options.json).absolute()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for offset in map(int, options.offsets.split(",")):
            random = np.random.default_rng(1)
            a = np.ones((options.rows, 3))
            a[:, 1:] = np.round(random.standard_normal((options.rows, 2)) * 2**20) / 2**20 + offset
            b = np.round((a @ [1, 2, 3] + 0.1 * random.standard_normal(options.rows)) * 2**20)
            b /= 2**20
            for window in (WINDOW, None):
                right, found = exact(np.column_stack([a, b]), window), {}
                for name, peer in peers.items():
                    start = os.times()
                    began = time.monotonic()
                    x = peer(a, b, window)
                    end = os.times()
                    found[name] = {
                        "error": float(np.max(np.abs(x[:, 1:] / right[:, 1:] - 1))),
                        "cpu_seconds": sum(end[:4]) - sum(start[:4]),
                        "seconds": time.monotonic() - began}
                cases.append({"rows": options.rows, "offset": offset,
                              "window": window or "expanding", "found": found})
                print(cases[-1], flush=True)
        os.chdir("/")
    out.write_text(json.dumps({"cases": cases}), encoding="utf-8")


if __name__ == "__main__":
    main()
