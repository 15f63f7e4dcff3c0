#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""r_peers.py QRTOOL [--problems N] [--seed S]: the random problems of app/window_test.py and of
app/append_test.py beside R's lm.wfit, which is LINPACK's QR. Needs Rscript.

x, standard errors and R^2 of every window whose columns, with norm 1, have a condition below 10^6,
and x of every appended state of real numbers. R gets the numbers as binary float64: for each
problem m, n, whether there is an intercept, the design, b and the weights."""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "app"))
from append_test import Chain, contents, problem_by_chance  # noqa: E402
from window_test import Problem, numbers, windows_of  # noqa: E402

MOST_CONDITION = 1e6
R = """
given <- file("given.bin", "rb"); found <- file("found.bin", "wb")
repeat {
  sizes <- readBin(given, "double", 3)
  if (length(sizes) < 3) break
  m <- sizes[1]; n <- sizes[2]
  a <- matrix(readBin(given, "double", m * n), m, n)
  b <- readBin(given, "double", m); w <- readBin(given, "double", m)
  fit <- lm.wfit(a, b, w)
  rss <- sum(w * fit$residuals^2)
  mean_b <- if (sizes[3] == 1) sum(w * b) / sum(w) else 0
  se <- sqrt(diag(chol2inv(fit$qr$qr, fit$rank)) * rss / max(m - fit$rank, 1))
  if (fit$rank < n) se <- rep(NA, n)
  writeBin(c(fit$coefficients, se, 1 - rss / sum(w * (b - mean_b)^2)), found)
}
"""


class Systems:
    """What R is given, and what the program has found: None where it finds no such number."""

    def __init__(self):
        self.given, self.found = [], []

    def add(self, where, system, found):
        a, b, w, has_ones = system
        root = np.sqrt(w)[:, None]
        sizes = np.linalg.norm(root * a, axis=0)
        condition = np.linalg.cond(root * a / sizes) if sizes.all() else np.inf
        if not condition < MOST_CONDITION:
            return
        self.given.append(np.concatenate([[*a.shape, has_ones], a.T.ravel(), b, w]))
        self.found.append((where, a, b, w, condition, found))

    def compare(self):
        """Returns the largest differences of x, of errors and of R^2, beside what is allowed:
        1e-13 condition for x, as in window_test.py. R's own x was seen 9 u condition from the exact
        one, and that of qrtool 4."""
        np.concatenate(self.given).astype("<f8").tofile("given.bin")
        pathlib.Path("lm.R").write_text(R, encoding="ascii")
        subprocess.run(["Rscript", "--vanilla", "lm.R"], check=True)
        by_r, worst = np.fromfile("found.bin", "<f8"), {"x": 0, "se": 0, "r2": 0}
        for where, a, b, w, condition, (x, se, r2) in self.found:
            n = a.shape[1]
            of_r, by_r = by_r[:2 * n + 1], by_r[2 * n + 1:]
            root = np.sqrt(w)
            sizes = np.linalg.norm(root[:, None] * a, axis=0)
            size = np.linalg.norm(x * sizes) + np.linalg.norm(root * b) * (1 + 1e-3 * condition)
            allowed = 1e-13 * condition
            seen = {"x": np.linalg.norm((x - of_r[:n]) * sizes) / size / allowed}
            if r2 is not None and 1 - r2 > 1e-6:  # b is not constant, and the fit is not perfect
                seen["r2"] = abs(r2 - of_r[-1]) / (1 - r2) / allowed / 1e3
                if se is not None:
                    seen["se"] = np.max(np.abs(se / of_r[n:-1] - 1)) / allowed / 1e3
            for name, value in seen.items():
                worst[name] = max(worst[name], value)
                if not value <= 1:
                    raise SystemExit(f"{where}: {name} differs from R's: {x} {se} {r2}; {of_r}")
        return worst


def take_windows(number, seed, systems):
    problem = Problem(np.random.default_rng([seed, number]))
    rows = problem.run()
    names = (["(intercept)"] if problem.intercept else []) + problem.names
    has_se = f"se_{names[0]}" in rows[0]
    x = numbers(rows, names)
    se = numbers(rows, [f"se_{name}" for name in names]) if has_se else None
    r2 = numbers(rows, ["r2"])[:, 0]
    design = np.column_stack([np.ones(problem.m), problem.a]) if problem.intercept else problem.a
    weights = np.ones(problem.m) if problem.w is None else problem.w
    counts = ~np.isnan(problem.a).any(1) & ~np.isnan(problem.b) & (weights > 0)
    keys = problem.keys if problem.by else [""] * problem.m
    for i, chosen in enumerate(windows_of(keys, 0 if problem.expands else problem.window)):
        used = chosen[counts[chosen]]
        if len(used) < problem.least:
            continue
        spare = has_se and len(used) > len(names)
        systems.add(f"window {i} of problem {number}",
                    (design[used], problem.b[used], weights[used], problem.intercept),
                    (x[i], se[i] if spare else None,
                     None if np.isnan(r2[i]) or not spare else r2[i]))


def take_states(random, number, systems):
    a, b, cuts, weights = problem_by_chance(random)
    if a.dtype != np.float64:
        return 0
    x = contents(Chain(a, b, cuts, weights=weights).last)["X"]
    for j in range(b.shape[1]):
        systems.add(f"right side {j} of appended problem {number}",
                    (a, b[:, j], np.ones(len(a)) if weights is None else weights, False),
                    (x[:, j], None, None))
    return 1


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tool")
    parser.add_argument("--problems", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        windows, states, appended = Systems(), Systems(), 0
        for number in range(asked.problems):
            take_windows(number, asked.seed, windows)
        random = np.random.default_rng(asked.seed)
        for number in range(asked.problems):
            appended += take_states(random, number, states)
        for name, systems in ((f"windows of {asked.problems} problems", windows),
                              (f"right sides of {appended} appended problems", states)):
            worst = systems.compare()
            print(f"{len(systems.found)} {name} agree with R; largest difference beside what is "
                  "allowed: " + ", ".join(f"{key} {value:.2g}" for key, value in worst.items()
                                          if value))
        os.chdir("/")


if __name__ == "__main__":
    main()
