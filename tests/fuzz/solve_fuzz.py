#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""solve_fuzz.py: gives random systems with random options to `qrtool solve`, and damaged files of A
and b.

A run may refuse its input, but it must not crash, must not depend on memory that nothing was
written to, and must not leave a part of an output. What it solves NumPy solves too: each x has
nearly the least residual, each rank is that of the family it was drawn from, a problem with NaN
stays alone, and `verify` comes to the same verdict.

    solve_fuzz.py QRTOOL [--systems N] [--damaged N] [--seed S] [--keep FOLDER]
"""
import argparse
import os
import random
import sys

from fuzz import Fuzz

import h5py
import numpy as np

from hdf5_damage import Sample

PARTS = {"h5": ("x.h5",), "npz": ("x.npz",), "npy": ("x.X.npy", "x.se.npy", "x.report.json"),
         "csv": ("x.X.csv", "x.se.csv", "x.report.csv")}


class System:
    """One drawn run: the arrays, how they lie in files, and the options."""

    def __init__(self, generator):
        self.random = generator
        self.numbers = np.random.default_rng(generator.randrange(1 << 30))
        self.shape()
        self.entries()
        self.choose_options()

    def shape(self):
        n = self.random.choice((1, 1, 2, 3, 4, 5, 8, 13, 17))
        m = self.random.choice((n, n + 1, 2 * n + 3, 40, max(n - 1, 1), 70))
        self.batch = self.random.choice(((), (1,), (3,), (9,), (2, 3)))
        # Right sides: as A's batch, one A for all by rows or by columns, or p for each.
        self.layout = self.random.choice(("vectors", "matrices", "shared rows", "shared first"))
        self.p = self.random.choice((1, 2, 5, 12)) if self.layout == "matrices" else 1
        if self.layout.startswith("shared"):
            self.sides = self.random.choice(((4,), (30,), (3, 7)))
            self.batch = ()
        self.m, self.n = m, n

    def entries(self):
        normal, m, n = self.numbers.standard_normal, self.m, self.n
        self.kind = self.random.choice(("f4", "f8", "f8"))
        self.family = self.random.choice(("gauss", "gauss", "deficient", "zero", "graded",
                                          "one-sided", "constant"))
        a = normal((*self.batch, m, n))
        if self.family == "deficient" and n > 1:
            a[..., n - 1] = a[..., 0]
        elif self.family == "zero":
            a[...] = 0
        elif self.family == "graded":
            a *= 10.0 ** -self.numbers.uniform(0, 12 if self.kind == "f8" else 5, n)
        elif self.family == "one-sided":
            a += 100
        elif self.family == "constant":
            a[...] = 3
        exponent = self.random.choice((0, 0, 0, 20, -20, 30, -30))
        self.a = (a * 10.0 ** exponent).astype(self.kind)
        if self.layout.startswith("shared"):
            sides = (*self.sides, m)
        else:
            sides = (*self.batch, m) if self.layout == "vectors" else (*self.batch, self.p, m)
        b = normal(sides) * 10.0 ** self.random.choice((0, 0, 10, -10))
        if self.random.random() < 0.2:  # consistent
            b = np.einsum("...ij,...j->...i", a, normal((*self.batch, n)))
            b = np.broadcast_to(b if self.layout in ("vectors", "shared rows", "shared first")
                                or not self.batch
                                else b[..., None, :], sides).copy()
        self.b = b.astype(self.kind)
        self.gaps = self.random.choice((0, 0, 0.1, 0.5))
        if self.gaps:
            missing = self.numbers.random(self.b.shape) < self.gaps
            self.b[missing] = self.random.choice((np.nan, np.nan, np.inf))

    def choose_options(self):
        pick, self.options, self.w = self.random.random, [], None
        if pick() < 0.5:
            self.options += ["--missing", "skip"]
        if pick() < 0.2:
            self.w = self.numbers.uniform(0, 3, self.m)
            self.w[self.numbers.random(self.m) < 0.2] = 0
            self.options += ["--weights", "in.h5:/w"]
        self.ridge = self.random.choice((0, 0, 0, 0, 1.0, 1e-3))
        if self.ridge:
            self.options += ["--ridge", str(self.ridge)]
        self.extra = [each for each in ("--basic", "--no-se", "--covariance") if pick() < 0.15]
        if pick() < 0.2:
            self.extra += ["--precision", self.random.choice(("single", "double"))]
        self.extra += ["--threads", self.random.choice("12")]
        if pick() < 0.2:
            self.extra += ["--memory", self.random.choice(("40MiB", "100MiB", "16MiB"))]
        self.rows = {"vectors": "last", "matrices": "matrix", "shared rows": "last",
                     "shared first": "first"}[self.layout]
        self.options += ["--rows", self.rows]
        self.ending = self.random.choice(tuple(PARTS))

    def stored_b(self):
        if self.layout == "matrices":
            return np.swapaxes(self.b, -1, -2)
        return np.moveaxis(self.b, -1, 0) if self.layout == "shared first" else self.b

    def write(self, path):
        with h5py.File(path, "w") as file:
            file["A"], file["b"] = self.a, self.stored_b()
            if self.w is not None:
                file["w"] = self.w

    def each(self):
        """(place among the right sides, A, b) of every right side, in their order in the report."""
        for place in np.ndindex(self.b.shape[:-1]):
            of_a = () if self.layout.startswith("shared") else place[:len(self.batch)]
            yield place, self.a[of_a], self.b[place]

    def places_of_x(self, x):
        """X with its n last."""
        if self.layout == "matrices":
            return np.swapaxes(x, -1, -2)
        return np.moveaxis(x, 0, -1) if self.layout == "shared first" else x

    def __str__(self):
        shapes = f"A {self.a.shape} b {self.b.shape} {self.layout}"
        return f"{self.kind} {self.family} {shapes} {self.options} {self.extra}"


def wanted(system, a, b, skips):
    """The system that one right side means in float64, scaled to a largest entry of 1; None where
    it has no solution."""
    a, b = a.astype("f8"), b.astype("f8")
    root = np.ones(len(b)) if system.w is None else np.sqrt(system.w.astype(a.dtype))
    kept = root > 0
    if skips:
        kept &= ~np.isnan(b) & ~np.isnan(a).any(axis=1)
    if not (np.isfinite(a[kept]).all() and np.isfinite(b[kept]).all()):
        return None
    a, b = a[kept] * root[kept, None], b[kept] * root[kept]
    if system.ridge:
        a = np.vstack([a, np.sqrt(system.ridge) * np.eye(system.n)])
        b = np.append(b, np.zeros(system.n))
    return a, b


class SolveFuzz(Fuzz):
    def systems(self, count):
        for self.number in range(count):
            system = System(random.Random(f"{self.options.seed} solve {self.number}"))
            path = os.path.join(self.work, "in.h5")
            system.write(path)
            result = self.run_twice("solve", ["solve", "in.h5:/A", "in.h5:/b", f"x.{system.ending}",
                                              "-f",
                                    "--backend", "cpu", *system.options, *system.extra],
                                    PARTS[system.ending], [path])
            if result is None:
                continue
            code, err, written = result
            if (code in (0, 1)) != (written[0] is not None):
                self.fail(f"exit {code}, and the output is there or not: {system} {err}",
                          self.number, [path])
            elif code in (0, 1):
                self.compare(system, code, path)
            elif code not in (2, 3, 4) or not ("--memory" in system.extra
                                               or "--covariance" in system.extra or
                                               system.ending == "csv"):
                self.fail(f"refused with exit {code}: {system} {err}", self.number, [path])

    def compare(self, system, code, path):
        verified = self.run("verify", "in.h5:/A", "in.h5:/b", f"x.{system.ending}",
                            *[each for each in ("--weights", "in.h5:/w") if system.w is not None],
                            # CSV records no --rows.
                            *[each for each in ("--rows", system.rows) if system.ending == "csv"])
        self.ended_well("verify", verified, self.number, [path])
        if verified[0] != code:
            self.fail(f"solve ends with {code}, verify with {verified[0]}: {system} {verified[1]}",
                      self.number, [path])
        # The same numbers in HDF5 are the easiest to read.
        if system.ending != "h5":
            self.run("solve", "in.h5:/A", "in.h5:/b", "x.h5", "-qf", "--backend", "cpu",
                     *system.options, *system.extra)
        with h5py.File(os.path.join(self.work, "x.h5")) as file:
            x, status = system.places_of_x(file["X"][...]), file["report/status"][...]
            norms = file["report/residual_norm"][...]
        status = np.broadcast_to(status.reshape(-1), (int(np.prod(system.b.shape[:-1])),))
        norms = np.broadcast_to(norms.reshape(-1), status.shape)
        for number, (place, a, b) in enumerate(system.each()):
            reason = self.judge(system, (a, b), x[place], int(status[number]), norms[number])
            if reason:
                self.fail(f"{reason} at {place}: {system}", self.number, [path])
                return

    def judge(self, system, one, x, status, norm):
        """What is wrong with one solution; None where it is right."""
        problem = wanted(system, *one, skips="skip" in system.options)
        if problem is None and status == 5:  # too few rows count, and one of them is not finite
            few = system.w is not None and np.count_nonzero(system.w) < system.n
            return None if few and np.isnan(x).all() else "status 5"
        if (problem is None) != (status == 2):
            return f"status {status}"
        if problem is None:
            return None if np.isnan(x).all() else "no NaN"
        if status == 3:  # x exceeds its type
            return None
        # Rows that do not determine x: fewer than columns. With a ridge, or a wide A, none at all.
        rows = len(problem[1]) - (system.n if system.ridge else 0)
        least = 1 if system.ridge or len(one[1]) < system.n else system.n
        if (rows < least) != (status == 5):
            return f"status {status}"
        if status == 5:
            return None if np.isnan(x).all() else "no NaN"
        if status != 0:
            return f"status {status}"
        if not np.isfinite(x).all():
            return "x is not finite"
        with np.errstate(all="ignore"):
            return self.judge_residual(system, problem, x.astype("f8"), norm)

    @staticmethod
    def judge_residual(system, problem, x, norm):
        """The residual may be larger than the least one by what a backward error within its bar
        allows."""
        a, b = problem
        single = system.kind == "f4" or "single" in system.extra
        u = 2.0 ** (-23 if single else -52)
        scale_a = np.abs(a).max(initial=0) or 1.0
        scale_b = np.abs(b).max(initial=0) or 1.0
        a, b, x = a / scale_a, b / scale_b, x * (scale_a / scale_b)
        if not np.isfinite(x).all():
            return None
        if np.linalg.norm(x) == 0 < np.linalg.norm(b) and np.linalg.norm(a.T @ b) < 1e-300:
            return None
        # Columns that are taken for dependent may take a part of A of this relative size away.
        bar = u * (min(max(len(b), 16), 30 * min(a.shape)) + 2 * max(16, 2 * a.shape[1]) *
                   np.sqrt(a.shape[1]))
        best = np.linalg.lstsq(a / (np.linalg.norm(a, axis=0) + (np.linalg.norm(a, axis=0) == 0)),
                               b, rcond=None)[0]
        least = np.linalg.norm(b - (a / (np.linalg.norm(a, axis=0) +
                                         (np.linalg.norm(a, axis=0) == 0))) @ best)
        found = np.linalg.norm(b - a @ x)
        size = np.linalg.norm(a) * np.linalg.norm(x) + np.linalg.norm(b)
        best_size = np.linalg.norm(best) * np.sqrt(a.shape[1]) + np.linalg.norm(b)
        # The last bit of a denormal x is no relative error.
        last_bit = 2.0 ** (-149 if single else -1074) * (scale_a / scale_b)
        allowed = 4 * bar * (size + best_size) + last_bit * np.sqrt(len(x)) * np.linalg.norm(a)
        if found > least + allowed:
            return f"residual {found} where {least} can be had (allowed {allowed})"
        if not system.ridge and abs(norm / scale_b - found) > 100 * u * size:
            return f"residual_norm {norm / scale_b} is {found}"
        return None

    def damaged(self, count):
        whole = os.path.join(self.folder, "whole.h5")
        numbers = np.random.default_rng(3)
        with h5py.File(whole, "w", libver="latest") as file:
            file.create_dataset("A", data=numbers.standard_normal((6, 12, 3)), chunks=(2, 12, 3),
                                fletcher32=True,
                                compression="gzip")
            file["b"] = numbers.standard_normal((6, 12)).astype("f4")
            file["w"] = numbers.uniform(1, 2, 12)
        sample = Sample(whole)
        path = os.path.join(self.work, "d.h5")
        for self.number in range(count):
            generator = random.Random(f"{self.options.seed} solve damage {self.number}")
            with open(path, "wb") as file:
                file.write(sample.damaged(generator))
            options = generator.choice(([], ["--missing", "skip"], ["--weights", f"{path}:/w"],
                                        ["--rows", "matrix"]))
            output = os.path.join(self.work, "x.h5")
            result = self.run_twice("damaged",
                                    ["solve", f"{path}:/A", f"{path}:/b", output, "-q", "--backend",
                                     "cpu",
                         "--threads", "1", *options], ["x.h5"], [path])
            if result is None:
                continue
            code, _, (written,) = result
            if (code in (0, 1)) != (written is not None):
                self.fail(f"exit {code}, and the output is there or not", self.number, [path])
            elif code == 0 and not options and not self.solves(path, output):
                self.fail("h5py reads another system", self.number, [path, output])

    def solves(self, path, output):
        """Whether X solves what h5py reads."""
        a, b = self.reader.read(path, b"/A"), self.reader.read(path, b"/b")
        if a is None or b is None or a.ndim < 2:
            return False
        with h5py.File(output) as file:
            x = file["X"][...].astype("f8")
        if a.ndim < 3 or b.shape != a.shape[:-1] or x.shape != a.shape[:-2] + a.shape[-1:]:
            # It is read in another way that fits; what is in the file is the other test's subject.
            return True
        with np.errstate(all="ignore"):
            gradient = np.einsum("...ij,...i->...j", a, b - np.einsum("...ij,...j->...i", a, x))
            size = np.linalg.norm(a, axis=(-2, -1)) ** 2 * np.linalg.norm(x, axis=-1)
            size += np.linalg.norm(a, axis=(-2, -1)) * np.linalg.norm(b, axis=-1)
        known = np.isfinite(size)
        return bool(np.all(np.linalg.norm(gradient, axis=-1)[known] <= 1e-4 * size[known]))


def main():
    np.seterr(all="ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("qrtool", type=os.path.abspath)
    parser.add_argument("--systems", type=int, default=0)
    parser.add_argument("--damaged", type=int, default=0)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--keep", type=os.path.abspath)
    options = parser.parse_args()
    fuzz = SolveFuzz(options)
    try:
        fuzz.systems(options.systems)
        fuzz.damaged(options.damaged)
        fuzz.report()
    finally:
        fuzz.close()
    return 1 if fuzz.failures else 0


if __name__ == "__main__":
    sys.exit(main())
