#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""exact_systems.py: solves random least-squares problems with `qrtool solve` and in rational
arithmetic, and compares x, its errors, leverages, rank and verdict.

The numbers of a problem are integers, and each column has a power of two beside them, up to 10^20
from one column to another, so that rational arithmetic knows rank and solution exactly. A solution
that passes must be right. A right one that fails is counted: at most one in 5,000 may.

    exact_systems.py QRTOOL [--problems N] [--seed S] [--verbose]
"""
import argparse
import collections
import os
import random
import subprocess
import sys
import tempfile
from fractions import Fraction

try:
    import h5py
    import numpy as np
except ImportError:
    print("h5py and NumPy are needed")
    sys.exit(77)

MOST_REFUSED = 1 / 5000


def eliminate(rows, columns):
    """The reduced row echelon form of rows of Fractions in their first `columns`, and the columns
    of its pivots."""
    rows, pivots, top = [list(row) for row in rows], [], 0
    for j in range(columns):
        found = next((i for i in range(top, len(rows)) if rows[i][j] != 0), None)
        if found is None:
            continue
        rows[top], rows[found] = rows[found], rows[top]
        inverse = 1 / rows[top][j]
        rows[top] = [entry * inverse for entry in rows[top]]
        for i, row in enumerate(rows):
            if i != top and row[j] != 0:
                factor = row[j]
                rows[i] = [x - factor * y for x, y in zip(row, rows[top])]
        pivots.append(j)
        top += 1
        if top == len(rows):
            break
    return rows[:top], pivots


def dot(x, y):
    return sum((a * b for a, b in zip(x, y)), Fraction(0))


class Exact:
    """min (b - A x)' W (b - A x) + ridge x'x for the rows of A, which are Fractions."""

    def __init__(self, a, weights, ridge):
        self.a, self.weights = a, weights
        self.n = len(a[0]) if a else 0
        weighted = [[w * entry for entry in row] for row, w in zip(a, weights)]
        columns, by_weight = list(zip(*a)), list(zip(*weighted))
        self.gram = [[dot(by_weight[i], columns[j]) + (ridge if i == j else 0)
                      for j in range(self.n)] for i in range(self.n)]
        identity = [[Fraction(i == j) for j in range(self.n)] for i in range(self.n)]
        reduced, self.pivots = eliminate([g + e for g, e in zip(self.gram, identity)], self.n)
        self.rank = len(self.pivots)
        # (A'WA)^-1 on the columns of the pivots, and a basis of the null space.
        square = [[self.gram[i][j] for j in self.pivots] + [Fraction(i == k) for k in self.pivots]
                  for i in self.pivots]
        reduced_square, _ = eliminate(square, self.rank)
        self.inverse = [row[self.rank:] for row in reduced_square]
        self.null = []
        for free in (j for j in range(self.n) if j not in self.pivots):
            vector = [Fraction(0)] * self.n
            vector[free] = Fraction(1)
            for row, pivot in zip(reduced, self.pivots):
                vector[pivot] = -row[free]
            self.null.append(vector)

    def solve(self, b):
        """The solution of least norm."""
        right = [dot((w * y for w, y in zip(self.weights, b)), column) for column in zip(*self.a)]
        x = [Fraction(0)] * self.n
        for row, pivot in zip(self.inverse, self.pivots):
            x[pivot] = dot(row, (right[j] for j in self.pivots))
        if self.null:
            system = [[dot(u, v) for v in self.null] + [dot(u, x)] for u in self.null]
            reduced, _ = eliminate(system, len(self.null))
            for vector, row in zip(self.null, reduced):
                x = [entry - row[-1] * v for entry, v in zip(x, vector)]
        return x

    def residuals(self, b, x):
        return [y - dot(row, x) for row, y in zip(self.a, b)]

    def variance(self, j):
        """Entry (j, j) of (A'WA)^-1, of a matrix of full rank."""
        return self.inverse[j][j]

    def leverage(self, i):
        part = [self.a[i][j] for j in self.pivots]
        return self.weights[i] * dot(part, [dot(row, part) for row in self.inverse])


class Drawn:
    """The arrays and options of one run."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.draw_shapes()
        self.draw_entries()
        self.draw_options()

    def draw_shapes(self):
        pick = self.random.choice
        self.n = pick((1, 1, 2, 2, 3, 4, 5, 6))
        self.m = pick((self.n, self.n + 1, self.n + 2, 2 * self.n + 3, 17, 24))
        self.is_wide = self.random.random() < 0.07 and self.n > 1
        if self.is_wide:
            self.m = self.random.randrange(1, self.n)
        self.batch = pick(((), (1,), (2,), (5,), (9,), (1, 3), (3, 1), (1, 1), (2, 1, 2)))
        self.k = pick((None, 1, 1, 2, 4))  # right sides as columns; None: a vector for each A
        # A dimension of 1 of A or of B serves all of the other.
        shared = pick(("none", "none", "a", "b"))
        self.a_batch = tuple(1 for _ in self.batch) if shared == "a" else self.batch
        self.b_batch = tuple(1 for _ in self.batch) if shared == "b" else self.batch
        self.is_complex = self.random.random() < 0.15
        self.single = self.random.random() < 0.3

    def integers(self, shape, most):
        flat = [self.random.randint(-most, most) for _ in range(int(np.prod(shape)))]
        return np.array(flat, dtype=object).reshape(shape)

    def draw_entries(self):
        pick, shape = self.random.choice, (*self.a_batch, self.m, self.n)
        self.family = pick(("integers", "integers", "offset", "powers", "dependent", "dependent",
                            "duplicate", "zero column", "dummies"))
        a = self.integers(shape, 30)
        if self.family == "offset":
            a = a + self.random.randint(100, 900)
        elif self.family == "powers":
            t = self.integers((*self.a_batch, self.m, 1), 4) + 5
            for j in range(self.n):
                a[..., j] = t[..., 0] ** j
        elif self.family == "dependent" and self.n > 1:
            a[..., -1] = a[..., 0] - 2 * a[..., self.n // 2]
        elif self.family == "duplicate" and self.n > 1:
            a[..., self.n // 2] = a[..., -1]
        elif self.family == "zero column":
            a[..., self.random.randrange(self.n)] = 0
        elif self.family == "dummies":
            kind = self.integers((*self.a_batch, self.m), 1)
            a[..., 0] = 1
            for j in range(1, min(self.n, 4)):
                a[..., j] = np.where(kind == j - 2, 1, 0)
        imaginary = self.integers(shape, 30) if self.is_complex else 0 * a
        if self.is_complex and self.family in ("dependent", "duplicate", "zero column"):
            imaginary = 2 * a
        most = pick((0, 0, 5, 33)) if self.single else pick((0, 0, 10, 33, 66))
        half = most // 2
        self.exponents = [self.random.randint(-half, most - half) for _ in range(self.n)]
        scale = np.array([Fraction(2) ** e for e in self.exponents], dtype=object)
        self.a = (a * scale, imaginary * scale)
        sides = (*self.b_batch, self.m) if self.k is None else (*self.b_batch, self.m, self.k)
        b = self.integers(sides, 1000)
        if self.random.random() < 0.3 and self.a_batch == self.b_batch and not self.is_complex:
            x = self.integers((*self.b_batch, self.n), 9)
            fitted = (a * x[..., None, :]).sum(axis=-1)
            b = fitted if self.k is None else np.repeat(fitted[..., None], self.k, axis=-1)
        self.b = (b, self.integers(sides, 1000) if self.is_complex else 0 * b)

    def draw_options(self):
        self.options, self.weights = ["--rows", "last" if self.k is None else "matrix"], None
        if self.random.random() < 0.2 and not self.is_wide:
            shape = (self.m,) if self.random.random() < 0.5 else self.b[0].shape
            self.weights = abs(self.integers(shape, 4))
            self.options += ["--weights", "in.h5:/w"]
        self.ridge = self.random.choice((0, 0, 0, 0, 0, 1, 4))
        if self.ridge and not self.is_wide:
            self.options += ["--ridge", str(self.ridge)]
        else:
            self.ridge = 0
        self.missing = np.zeros(self.b[0].shape, dtype=bool)
        if self.random.random() < 0.2 and not self.is_wide:
            self.options += ["--missing", "skip"]
            draws = [self.random.random() < 0.15 for _ in range(self.missing.size)]
            self.missing = np.array(draws).reshape(self.missing.shape)
        self.leverage = self.random.random() < 0.3
        self.options += ["--leverage"] if self.leverage else []
        self.options += ["--threads", self.random.choice("12")]

    def stored(self, parts):
        kind = ("c" if self.is_complex else "f") + str((4 if self.single else 8) *
                                                       (2 if self.is_complex else 1))
        real = parts[0].astype("f8")
        return (real + 1j * parts[1].astype("f8") if self.is_complex else real).astype(kind)

    def write(self, path):
        b = self.stored(self.b)
        b[self.missing] = np.nan
        with h5py.File(path, "w") as file:
            file["A"], file["b"] = self.stored(self.a), b
            if self.weights is not None:
                file["w"] = self.weights.astype("f8")

    def problems(self):
        """(place among the right sides, place of A, rows of A, b, weights, ridge) of each right
        side, complex ones as real ones of twice the size."""
        whole = np.broadcast_shapes(self.a_batch, self.b_batch)
        columns = [()] if self.k is None else [(j,) for j in range(self.k)]
        for place in np.ndindex(whole):
            of_a = tuple(0 if d == 1 else i for i, d in zip(place, self.a_batch))
            of_b = tuple(0 if d == 1 else i for i, d in zip(place, self.b_batch))
            for column in columns:
                at = (*of_b, slice(None), *column)
                weights = np.ones(self.m, dtype=int)
                if self.weights is not None:
                    weights = self.weights if self.weights.ndim == 1 else self.weights[at]
                kept = [i for i in range(self.m) if not self.missing[at][i] and weights[i] != 0]
                parts = 2 if self.is_complex else 1
                yield (place, column, of_a, self.real_rows(of_a, kept), self.real_side(at, kept),
                       [Fraction(int(weights[i])) for i in kept] * parts, kept)

    def real_rows(self, at, kept):
        re = [[Fraction(x) for x in self.a[0][at][i]] for i in kept]
        if not self.is_complex:
            return re
        im = [[Fraction(x) for x in self.a[1][at][i]] for i in kept]
        return ([r + [-x for x in i] for r, i in zip(re, im)] + [i + r for r, i in zip(re, im)])

    def real_side(self, at, kept):
        sides = [Fraction(int(self.b[0][at][i])) for i in kept]
        return sides + [Fraction(int(self.b[1][at][i])) for i in kept] if self.is_complex else sides

    def __str__(self):
        return (f"{'complex ' if self.is_complex else ''}{'single' if self.single else 'double'} "
                f"{self.family} A {self.a[0].shape} b {self.b[0].shape} exponents {self.exponents} "
                f"{' '.join(self.options)}")


class Campaign:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.counts, self.failures = collections.Counter(), []

    def run(self, *arguments):
        return subprocess.run([self.options.qrtool, *arguments], cwd=self.folder, text=True,
                              capture_output=True, timeout=600, check=False)

    def solve(self, seed):
        drawn = Drawn(seed)
        drawn.write(os.path.join(self.folder, "in.h5"))
        done = self.run("solve", "in.h5:/A", "in.h5:/b", "x.h5", "-qf", "--backend", "cpu",
                        *drawn.options)
        if done.returncode in (2, 3) and "hint:" in done.stderr:
            self.counts["files refused with a hint"] += 1
            return
        if done.returncode not in (0, 1):
            self.fail(seed, drawn, f"exit {done.returncode}: {done.stderr.strip()}")
            return
        weights = ["--weights", "in.h5:/w"] if drawn.weights is not None else []
        verified = self.run("verify", "in.h5:/A", "in.h5:/b", "x.h5", "-q", *weights)
        if verified.returncode != done.returncode:
            self.fail(seed, drawn, f"solve ends with {done.returncode}, verify with "
                                   f"{verified.returncode}: {verified.stderr.strip()}")
        with h5py.File(os.path.join(self.folder, "x.h5")) as file:
            self.compare(seed, drawn, file)

    def fail(self, seed, drawn, reason):
        self.failures.append(f"{seed}: {reason}: {drawn}")
        if self.options.verbose:
            print(self.failures[-1], flush=True)

    def compare(self, seed, drawn, file):
        whole = np.broadcast_shapes(drawn.a_batch, drawn.b_batch)
        sides = (*whole, *(() if drawn.k is None else (drawn.k,)))
        x = file["X"][...].reshape((*whole, drawn.n, *(() if drawn.k is None else (drawn.k,))))
        se = file["se"][...].reshape(x.shape) if "se" in file else None

        def numbers(name):  # of each right side, of each place, or of each A
            stored = file["report/" + name][...]
            if stored.size == int(np.prod(sides)):
                return stored.reshape(sides)
            shape = whole if stored.size == int(np.prod(whole)) else drawn.a_batch
            per_place = np.broadcast_to(stored.reshape(shape), whole)
            return np.broadcast_to(per_place[..., None], sides) if drawn.k else per_place

        status, ranks = numbers("status"), numbers("rank")
        leverages = file["leverage"][...] if "leverage" in file else None
        exact_of = {}
        for place, column, of_a, rows, b, weights, kept in drawn.problems():
            self.counts["problems"] += 1
            at, x_at = (*place, *column), (*place, slice(None), *column)
            key = (of_a, tuple(kept), tuple(weights))
            if key not in exact_of:
                exact_of[key] = Exact(rows, weights, Fraction(drawn.ridge)) if rows else None
            problem = Problem(drawn, exact_of[key], b, kept)
            hats = None
            if leverages is not None and not drawn.missing.any():
                of_side = leverages.ndim == len(whole) + (1 if drawn.k is None else 2)
                if leverages.shape[:-1] == drawn.a_batch:
                    hats = leverages[of_a]
                elif of_side and leverages.shape[:-1] == sides:
                    hats = leverages[at]
            reason = problem.judge(x[x_at], None if se is None else se[x_at], int(status[at]),
                                   int(ranks[at]), hats, self.counts)
            if reason:
                self.fail(seed, drawn, f"{reason} at {at}")
                return

    def report(self):
        print(", ".join(f"{count} {what}" for what, count in sorted(self.counts.items())))
        for failure in self.failures[:20]:
            print(failure)
        refused = self.counts["right but refused"]
        if refused > max(1, MOST_REFUSED * self.counts["problems"]):
            self.failures.append("too many right solutions refused")
        print(f"{len(self.failures)} failed")
        return 1 if self.failures else 0


class Problem:
    """One right side with its exact solution, and how far from it rounding may lead."""

    def __init__(self, drawn, exact, b, kept):
        self.drawn, self.exact, self.b, self.kept = drawn, exact, b, kept
        self.u = 2.0 ** (-23 if drawn.single else -52)
        self.parts = 2 if drawn.is_complex else 1

    def rows_and_columns(self):
        return len(self.kept), self.drawn.n

    def measure(self):
        """The condition on columns of norm 1, and the sizes that errors are relative to."""
        exact = self.exact
        scaled = [[float(entry) for entry in row] for row in self.scaled_rows()]
        singular = np.linalg.svd(np.array(scaled), compute_uv=False)
        self.largest = singular[0] if len(singular) else 0.0
        rank = exact.rank
        self.least = singular[rank - 1] if rank else 1.0
        self.condition = self.largest / self.least if rank else 1.0
        self.x = exact.solve(self.b)
        self.residuals = exact.residuals(self.b, self.x)
        self.squares = sum((w * r * r for w, r in zip(exact.weights, self.residuals)), Fraction(0))
        self.ridge_part = self.drawn.ridge * dot(self.x, self.x)
        self.residual_norm = float(self.squares + self.ridge_part) ** 0.5
        self.b_norm = float(sum((w * y * y for w, y in zip(exact.weights, self.b)),
                                Fraction(0))) ** 0.5

    def scaled_rows(self):
        """The rows of A times the roots of the weights, and of the ridge; columns of norm 1."""
        exact = self.exact
        self.norms = [float(exact.gram[j][j]) ** 0.5 or 1.0 for j in range(exact.n)]
        rows = [[float(entry) * float(w) ** 0.5 / norm for entry, norm in zip(row, self.norms)]
                for row, w in zip(exact.a, exact.weights)]
        if self.drawn.ridge:
            root = self.drawn.ridge ** 0.5
            rows += [[root / norm if i == j else 0.0 for j, norm in enumerate(self.norms)]
                     for i in range(exact.n)]
        return rows

    def judge(self, x, se, status, rank, hats, counts):
        m, n = self.rows_and_columns()
        needed = 1 if self.drawn.ridge or self.drawn.is_wide else n
        if m < needed:
            if status != 5 or not np.isnan(x).all():
                return f"{m} rows for {n} columns have status {status}"
            counts["too few rows"] += 1
            return None
        if status == 5:
            return "status 5"
        self.measure()
        bar = self.u * max(m + (n if self.drawn.ridge else 0), 16)
        tolerance = self.u * max(16, 2 * n)
        if self.least < 200 * tolerance:
            counts["near a rank decision"] += 1
            return None
        if rank != self.exact.rank // self.parts:
            return f"rank {rank}, not {self.exact.rank // self.parts}"
        if not np.isfinite(x).all():
            return f"x is not finite, status {status}"
        parts = [*x.real, *x.imag] if self.parts == 2 else x
        x = [Fraction(float(entry)) for entry in parts]
        wrong = self.wrong_x(x, bar)
        if status != 0:
            if wrong:
                counts["wrong and refused"] += 1
                return None
            counts["right but refused"] += 1
            return None
        return (wrong or self.wrong_errors(se) or self.wrong_leverages(hats))

    def wrong_x(self, x, bar):
        """Says how x differs from the exact solution by more than a backward error within the bar
        explains."""
        difference = [float(a - b) * norm for a, b, norm in zip(x, self.x, self.norms)]
        size = float(sum((e * e * Fraction(norm) ** 2 for e, norm in zip(self.x, self.norms)),
                         Fraction(0))) ** 0.5
        error = sum(d * d for d in difference) ** 0.5
        last_bit = 2.0 ** (-149 if self.drawn.single else -1074) * max(self.norms)
        allowed = (16 * bar * self.condition * (size + self.b_norm + self.condition *
                                                self.residual_norm) + 4 * self.u * size + last_bit)
        residuals = self.exact.residuals(self.b, x)
        squares = sum((w * r * r for w, r in zip(self.exact.weights, residuals)), Fraction(0))
        squares += self.drawn.ridge * dot(x, x)
        excess = float(squares - self.squares - self.ridge_part)
        may = (16 * bar * (self.condition * size + 2 * self.b_norm)) ** 2
        if excess > may + last_bit:
            return f"the residual norm is {float(squares) ** 0.5}, {self.residual_norm} can be had"
        if self.exact.rank == self.exact.n:
            return f"x errs by {error}, {allowed} is allowed" if error > allowed else None
        fitted = [dot(row, x) for row in self.exact.a]
        shortest = self.exact.solve(fitted)
        apart = [u - v for u, v in zip(x, shortest)]
        error = (float(dot(apart, apart)) / (float(dot(shortest, shortest)) or 1.0)) ** 0.5
        if error > 10 * bar * self.condition ** 2:
            return f"x is apart from the shortest with its fit by {error} of its length"
        return None

    def wrong_errors(self, se):
        m, n = self.rows_and_columns()
        blur = 64 * self.u * max(m, 16) * self.condition ** 2
        if se is None or self.drawn.ridge or self.drawn.is_complex or blur > 0.01 or m <= n:
            return None
        if self.exact.rank < n:
            return None if np.isnan(se).all() else "a deficient matrix has standard errors"
        for j in range(n):
            variance = float(self.squares / (m - n) * self.exact.variance(j))
            wanted = variance ** 0.5
            floor = 64 * self.u * max(m, 16) * self.condition * (
                self.b_norm / self.norms[j]) * self.condition / (m - n) ** 0.5
            if not abs(float(se[j]) - wanted) <= blur * wanted + floor:
                return f"se of column {j} is {se[j]}, not {wanted}"
        return None

    def wrong_leverages(self, hats):
        if hats is None or self.drawn.ridge or self.drawn.is_complex:
            return None
        blur = 64 * self.u * max(len(self.kept), 16) * self.condition
        for i, row in enumerate(self.kept):
            wanted = float(self.exact.leverage(i))
            if not abs(float(hats[row]) - wanted) <= blur:
                return f"leverage of row {row} is {hats[row]}, not {wanted}"
        return None


def main():
    np.seterr(all="ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("qrtool", type=os.path.abspath)
    parser.add_argument("--problems", type=int, default=300)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="qrtool-exact-") as folder:
        campaign, number = Campaign(options, folder), 0
        while campaign.counts["problems"] < options.problems:
            campaign.solve(f"{options.seed} {number}")
            number += 1
        return campaign.report()


if __name__ == "__main__":
    sys.exit(main())
