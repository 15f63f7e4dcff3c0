#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""x, residuals, fitted values, R^2 and leverages of `qrtool solve` agree with other programs to two
digits of what the conditioning allows: with exact arithmetic on the eleven sets of NIST, with QR in
80 bits on random and hard problems, with lm() of R and with statsmodels where they are installed.

    regressions_test.py QRTOOL ROOT [PROBLEMS]     PROBLEMS: of each kind, 12 unless given; 120 make
                                                   more than 10,000 problems"""
import pathlib
import shutil
import subprocess
import sys
import unittest
from fractions import Fraction

import numpy as np

from tool import FolderTest, run

ROOT = pathlib.Path(sys.argv[2]).resolve()
PROBLEMS = int(sys.argv.pop(3)) if len(sys.argv) > 3 else 12
DIGITS = 100  # the two digits
OK = 0
DEGREES = {"pontius": 2, "filip": 10, "wampler1": 5, "wampler2": 5, "wampler3": 5, "wampler4": 5,
           "wampler5": 5}
SETS = ("norris", "noint1", "noint2", "longley", *DEGREES)

R_FITS = """
for (name in commandArgs(TRUE)) {
  t <- read.csv(name)
  fit <- lm(y ~ . - w, t, weights = t$w)
  cat(fit$rank, format(summary(fit)$r.squared, digits = 17), "\\n")
  h <- rep(NA, nrow(t))  # rows of weight 0 have none
  h[as.integer(names(hatvalues(fit)))] <- hatvalues(fit)
  write.table(format(cbind(h, t$y - fitted(fit)), digits = 17), paste0(name, ".out"),
              row.names = FALSE, col.names = FALSE, quote = FALSE)
}
"""


def solve(a, b, *options, w=None):
    """The members of the output for files of these arrays."""
    np.save("a.npy", a)
    np.save("b.npy", b)
    if w is not None:
        np.save("w.npy", w)
        options = (*options, "--weights", "w.npy")
    run("solve", "a.npy", "b.npy", "o.npz", "-f", "--backend", "cpu", "--residuals", "--fitted",
        "--leverage", *options)
    with np.load("o.npz") as file:
        return {name.removeprefix("report_"): file[name] for name in file.files}


class Reference:
    """Householder's QR of a batch of A with weighted rows and columns of norm 1, in 80 bits."""

    def __init__(self, a, b, w):
        wide = np.longdouble
        self.a, self.b, self.w = a.astype(wide), b.astype(wide), w.astype(wide)
        root = np.sqrt(self.w)
        weighted = self.a * root[:, :, None]
        self.scale = np.sqrt((weighted ** 2).sum(1))
        self.kappa = np.linalg.cond((weighted / self.scale[:, None, :]).astype(float))
        r = weighted / self.scale[:, None, :]
        z = self.b * root
        count, m, n = a.shape
        q = np.zeros((count, m, n), wide)
        q[:, np.arange(n), np.arange(n)] = 1
        steps = []
        for k in range(n):
            v = r[:, k:, k].copy()
            v[:, 0] += np.where(v[:, 0] < 0, -1, 1) * np.sqrt((v ** 2).sum(1))
            squares = (v ** 2).sum(1)
            # A column of a square matrix may already be zero below the diagonal.
            v *= np.sqrt(2 / np.where(squares > 0, squares, 1))[:, None]
            steps.append(v)
            r[:, k:] -= v[:, :, None] * (v[:, :, None] * r[:, k:]).sum(1)[:, None, :]
            z[:, k:] -= v * (v * z[:, k:]).sum(1)[:, None]
        for k in reversed(range(n)):
            v = steps[k]
            q[:, k:] -= v[:, :, None] * (v[:, :, None] * q[:, k:]).sum(1)[:, None, :]
        y = np.zeros((count, n), wide)
        for k in reversed(range(n)):
            y[:, k] = (z[:, k] - (r[:, k, k + 1:] * y[:, k + 1:]).sum(1)) / r[:, k, k]
        self.y = y
        self.x = y / self.scale
        self.fitted = (self.a * self.x[:, None, :]).sum(2)
        self.residuals = self.b - self.fitted
        self.leverage = (q ** 2).sum(2)
        self.root = root

    def norm(self, v):
        """Of a vector of the rows, weighted."""
        return np.sqrt(((self.root * v) ** 2).sum(1))

    def r_squared(self, has_intercept):
        mean = (self.w * self.b).sum(1) / self.w.sum(1) if has_intercept else 0 * self.w[:, 0]
        self.total = self.norm(self.b - mean[:, None]) ** 2
        return 1 - self.norm(self.residuals) ** 2 / self.total


class Regressions(FolderTest):
    def setUp(self):
        super().setUp()
        self.random = np.random.default_rng(2026)

    def expect(self, found, wanted, allowed, what):
        """Every problem of a batch keeps to its bound."""
        error = np.abs(found - wanted)
        worst = np.nanargmax(error / np.maximum(allowed, 1e-4900))
        self.assertTrue((error <= allowed).all(),
                        f"{what}: {float(error[worst])} at problem {worst}, allowed are "
                        f"{float(allowed[worst])}")

    def compare(self, found, reference, u, has_intercept, what):
        """`found` with the reference. Bounds: Wedin's for x, and those of b - A x, Q Q'."""
        kappa, norm = reference.kappa, reference.norm
        y_norm = np.sqrt((reference.y ** 2).sum(1))
        r_norm, b_norm = norm(reference.residuals), norm(reference.b)
        n = reference.a.shape[2]
        of_r = DIGITS * u * (kappa * r_norm + b_norm + np.sqrt(n) * y_norm)
        of_x = DIGITS * u * (kappa * y_norm + kappa ** 2 * r_norm + kappa * b_norm)
        zero = np.zeros(len(kappa))
        self.assertEqual(found["status"].tolist(), [OK] * len(kappa), what)
        self.assertEqual(set(found["rank"].tolist()), {n}, what)
        x_error = np.sqrt((((found["X"] - reference.x) * reference.scale) ** 2).sum(1))
        self.expect(x_error, zero, of_x, what + ": x")
        for name in ("residuals", "fitted"):
            self.expect(norm(found[name] - getattr(reference, name)), zero, of_r,
                        f"{what}: {name}")
        h = np.abs(found["leverage"] - reference.leverage).max(1)
        self.expect(h, zero, np.minimum(DIGITS * u * kappa * np.sqrt(n), 1.1), what + ": leverage")
        wanted = reference.r_squared(has_intercept)
        r2 = found["r_squared"]
        allowed = (2 * r_norm * of_r + of_r ** 2) / reference.total + DIGITS * 2 ** -53
        self.expect(r2, wanted, allowed, what + ": R^2")

    def problem(self, kind, shape, type_):
        """A batch of problems of a kind: A and b. Columns beyond the first two make it hard."""
        count, m, n = shape
        a = self.random.standard_normal(shape)
        b = self.random.standard_normal((count, m))
        small = 1e-9 if type_ == "f8" else 1e-3
        if kind == "graded":
            a *= np.logspace(-6, 6, n)
        elif kind == "offset":
            a += 1e3 if type_ == "f4" else 1e7
        elif kind == "collinear" and n > 1:
            a[:, :, -1] = a[:, :, 0] + small * a[:, :, -1]
        elif kind == "powers":
            t = np.sort(self.random.uniform(0, 1, (count, m)), 1)
            a = np.stack([t ** (k + 1) for k in range(n)], 2)
        elif kind == "consistent":
            b = (a @ self.random.standard_normal((count, n, 1)))[:, :, 0] + small * b
        elif kind == "outliers":
            a[:, 0] *= 1e4
            b[:, 0] *= 1e4
        elif kind in ("tiny", "huge"):
            power = {"f4": 12, "f8": 120}[type_] * (1 if kind == "huge" else -1)
            a, b = a * 10.0 ** power, b * 10.0 ** power
        return a.astype(type_), b.astype(type_)

    KINDS = ("normal", "graded", "offset", "collinear", "powers", "consistent", "outliers", "tiny",
             "huge")

    def batches(self):
        shapes = [(PROBLEMS, 7, 3), (PROBLEMS, 24, 5), (PROBLEMS, 90, 12)]
        for kind in self.KINDS:
            for shape in shapes:
                for type_ in ("f8", "f4"):
                    n = min(shape[2], 4) if kind == "powers" and type_ == "f4" else shape[2]
                    n = min(n, 8) if kind == "powers" else n
                    yield kind, (*shape[:2], n), type_, self.random.random() < 0.5

    def test_random_and_hard_problems(self):
        """Against QR in 80 bits."""
        problems = 0
        for kind, shape, type_, has_weights in self.batches():
            a, b = self.problem(kind, shape, type_)
            count, m, n = shape
            w = None
            if has_weights:
                w = (10.0 ** self.random.uniform(-2, 2, m)).astype(type_)
                w[self.random.integers(m)] = 0
            weights = np.broadcast_to(np.ones(m) if w is None else w, (count, m))
            u = 2.0 ** -24 if type_ == "f4" else 2.0 ** -53
            for has_intercept in (False, True):
                if has_intercept and kind == "offset":
                    continue  # then the columns are nearly dependent
                full = np.concatenate([np.ones((count, m, 1)), a], 2) if has_intercept else a
                if kind in ("tiny", "huge") and has_intercept:
                    continue
                reference = Reference(full, b, weights)
                more = ("--intercept",) if has_intercept else ()
                found = solve(a, b, *more, w=w)
                what = f"{kind} {shape} {type_}{' weights' * has_weights}{' ones' * has_intercept}"
                with self.subTest(what):
                    self.compare(found, reference, u, has_intercept, what)
                problems += count
        print(f"{problems} problems")

    def test_certified_sets(self):
        """Against rational numbers, of A as it is rounded."""
        for name in SETS:
            table = np.genfromtxt(ROOT / f"samples/strd/{name}.csv", delimiter=",", skip_header=1)
            b, a = table[:, 0], table[:, 1:]
            if name in DEGREES:
                # Python's power rounds as C's does.
                a = np.array([[float(t) ** k for k in range(1, DEGREES[name] + 1)]
                              for t in a[:, 0]])
            has_intercept = not name.startswith("noint")
            full = np.hstack([np.ones((len(b), 1)), a]) if has_intercept else a
            more = ["--intercept"] if has_intercept else []
            more += ["--rank-tolerance", "1e-16"] if name == "filip" else []
            found = solve(a, b, *more)
            x, leverage = exact(full, b)
            reference = Reference(full[None], b[None], np.ones((1, len(b))))
            reference.x = x[None]
            reference.y = reference.x * reference.scale
            reference.fitted = (reference.a * reference.x[:, None, :]).sum(2)
            reference.residuals = reference.b - reference.fitted
            reference.leverage = leverage[None]
            batch = {key: value.reshape(1) if value.size == 1 else value[None]
                     for key, value in found.items() if key != "qrtool"}
            with self.subTest(name):
                self.compare(batch, reference, 2.0 ** -53, has_intercept, name)

    @unittest.skipUnless(shutil.which("Rscript"), "R is not installed")
    def test_ranks_and_fits_of_r(self):
        """Where columns depend on each other x is another one, and all else the same."""
        names, problems = [], []
        for number in range(max(PROBLEMS, 24)):
            m, n = int(self.random.integers(8, 40)), int(self.random.integers(1, 6))
            a = self.random.integers(-9, 10, (m, n)).astype(float)
            if number % 3 == 1 and n > 1:
                a[:, -1] = a[:, 0] + (a[:, 1] if n > 2 else 0)
            if number % 3 == 2:
                a[:, 0] = 4  # depends on the ones
            b = self.random.standard_normal(m)
            w = self.random.integers(0 if number % 2 else 1, 5, m).astype(float)
            w[:2] = 1
            names.append(f"{number}.csv")
            header = ",".join(["w", "y", *[f"x{j}" for j in range(n)]])
            np.savetxt(names[-1], np.column_stack([w, b, a]), delimiter=",", fmt="%.17g",
                       header=header, comments="")
            problems.append((a, b, w))
        pathlib.Path("fits.R").write_text(R_FITS, encoding="utf-8")
        said = subprocess.run(["Rscript", "fits.R", *names], check=True, capture_output=True,
                              text=True).stdout
        for name, line, (a, b, w) in zip(names, said.splitlines(), problems):
            rank, r_squared = (float(each) for each in line.split())
            theirs = np.genfromtxt(name + ".out")
            found = solve(a, b, "--intercept", w=w)
            self.assertEqual(found["rank"].tolist(), [rank], name)
            self.assertEqual(found["status"].tolist(), [OK], name)
            np.testing.assert_allclose(found["r_squared"], r_squared, atol=1e-12, err_msg=name)
            np.testing.assert_allclose(found["residuals"], theirs[:, 1], atol=1e-10, err_msg=name)
            counts = w > 0
            np.testing.assert_allclose(found["leverage"][counts], theirs[counts, 0], atol=1e-10,
                                       err_msg=name)

    def test_statsmodels(self):
        try:
            import statsmodels.api as sm  # pylint: disable=import-outside-toplevel
        except ImportError:
            self.skipTest("statsmodels is not installed")
        for shape in ((PROBLEMS, 20, 4), (PROBLEMS, 60, 9)):
            a, b = self.random.standard_normal(shape), self.random.standard_normal(shape[:2])
            w = self.random.uniform(0.5, 2, shape[1])
            plain, weighted = solve(a, b, "--intercept"), solve(a, b, "--intercept", w=w)
            for i, (ai, bi) in enumerate(zip(a, b)):
                ones = sm.add_constant(ai)
                for found, fit in ((plain, sm.OLS(bi, ones).fit()),
                                   (weighted, sm.WLS(bi, ones, weights=w).fit())):
                    np.testing.assert_allclose(found["X"][i], fit.params, atol=1e-12)
                    np.testing.assert_allclose(found["se"][i], fit.bse, rtol=1e-10)
                    np.testing.assert_allclose(found["residuals"][i], fit.resid, atol=1e-12)
                    np.testing.assert_allclose(found["fitted"][i], fit.fittedvalues, atol=1e-12)
                    np.testing.assert_allclose(found["r_squared"][i], fit.rsquared, atol=1e-12)
                influence = sm.OLS(bi, ones).fit().get_influence()
                np.testing.assert_allclose(plain["leverage"][i], influence.hat_matrix_diag,
                                           atol=1e-12)


def exact(a, b):
    """x and leverages by the normal equations in rational numbers."""
    a = [[Fraction(each) for each in row] for row in a.tolist()]
    b = [Fraction(each) for each in b.tolist()]
    n = len(a[0])
    system = [[sum(row[i] * row[j] for row in a) for j in range(n)]
              + [sum(row[i] * y for row, y in zip(a, b))]
              + [Fraction(int(i == j)) for j in range(n)] for i in range(n)]
    for i in range(n):
        system[i] = [each / system[i][i] for each in system[i]]
        for k in range(n):
            if k != i:
                factor = system[k][i]
                system[k] = [x - factor * y for x, y in zip(system[k], system[i])]
    inverse = [row[n + 1:] for row in system]
    leverage = [sum(row[i] * sum(inverse[i][j] * row[j] for j in range(n)) for i in range(n))
                for row in a]

    def wide(values):
        """In 80 bits, as the sum of two numbers of 53."""
        high = [float(each) for each in values]
        low = [float(each - Fraction(h)) for each, h in zip(values, high)]
        return np.array(high, np.longdouble) + np.array(low, np.longdouble)

    return wide([row[n] for row in system]), wide(leverage)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
