#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every shape of A, B and weights with extents of 1 at any place gives the X, residuals and fitted
values of NumPy, on each route, from each format, and `verify` agrees: it refuses the right numbers
in other places. `right_sides_test.py QRTOOL [all]`: with `all` every shape takes every route."""
import itertools
import sys
import unittest

import h5py
import numpy as np

from tool import FolderTest, run, said

IS_LONG = sys.argv[2:] == ["all"]
N = 3
# Route -> rows of A. By rows all of [A B] is larger than the memory.
ROUTES = {"batch": 12, "tall": 9000, "rows": 60000}
FORMATS = ("npy", "h5", "npz", "column", "csv")
LEADS = ((), (1,), (2,), (1, 1), (2, 1), (1, 2), (2, 3))
SIDES = ((2,), (1,), (2, 1), (1, 2), (1, 1), (2, 1, 1), (1, 2, 1), (2, 3), (2, 3, 1), (1, 2, 3))


def fits(one, other):
    return all(x == y or 1 in (x, y) for x, y in zip(reversed(one), reversed(other)))


def shapes():
    """(leading dimensions of A, shape of B with m for the rows, --rows)."""
    for lead in LEADS:
        yield lead, ("m",), "last"
        if lead:
            yield lead, (*lead, "m"), "last"
        else:
            for sides in SIDES:
                yield lead, ("m", *sides), "first"
                yield lead, (*sides, "m"), "last"
        for other, p in itertools.product(LEADS, (1, 2)):
            if fits(lead, other):
                yield lead, (*other, "m", p), "matrix"


def as_columns(a, b, rows):
    """B as [..., m, p] that broadcasts beside A, and the function that brings [..., r, p] into the
    shape of B with r in place of m."""
    lead = a.shape[:-2]
    if rows == "matrix" and b.ndim > 1:
        return b, lambda x: x
    if rows == "first":
        return b.reshape(len(b), -1), lambda x: x.reshape(len(x), *b.shape[1:])
    if lead or b.ndim == 1:
        return b[..., None], lambda x: x[..., 0]
    sides = b.shape[:-1]
    return b.reshape(-1, b.shape[-1]).T, lambda x: x.T.reshape(*sides, len(x))


def reference(a, b, rows, w):
    """X, residuals and fitted values. w: None, m numbers, or the shape of B."""
    columns, restore = as_columns(a, b, rows)
    if w is None or w.shape != b.shape:
        root = np.ones(a.shape[-2]) if w is None else np.sqrt(w.reshape(-1))
        x = np.linalg.pinv(a * root[:, None]) @ (columns * root[:, None])
    else:  # one system for each right side
        root = np.sqrt(as_columns(a, w, rows)[0])
        each = np.swapaxes(root, -1, -2)[..., None]
        x = np.linalg.pinv(a[..., None, :, :] * each) @ (
            np.swapaxes(columns * root, -1, -2)[..., None])
        x = np.swapaxes(x[..., 0], -1, -2)
    fitted = a @ x
    return restore(x), restore(columns - fitted), restore(fitted)


def store(name, array, kind):
    """Writes an array, and returns how the command line names it."""
    if kind == "npz":
        np.savez(f"{name}.npz", **{name: array})
        return f"{name}.npz"
    if kind == "npy":
        np.save(f"{name}.npy", array)
        return f"{name}.npy"
    if kind == "csv":
        np.savetxt(f"{name}.csv", array, delimiter=",", fmt="%.17g")
        return f"{name}.csv"
    with h5py.File(f"{name}.h5", "w") as file:
        file[name] = array
    return f"{name}.h5"


class RightSides(FolderTest):
    def check(self, number, route, lead, dims, rows):
        m = ROUTES[route]
        kind = FORMATS[number % len(FORMATS)]
        if kind == "column" and rows != "matrix":  # other axes are not turned
            kind = "h5"
        chance = np.random.default_rng(number)
        a = chance.standard_normal((*lead, m, N))
        b = chance.standard_normal([m if extent == "m" else extent for extent in dims])
        if kind == "csv" and (a.ndim > 2 or b.ndim > 2 or route == "rows"):  # lines are long there
            kind = "npy"
        of_w = (None, (m,), b.shape, None, (m, 1), b.shape, (1, m))[number % 7]
        w = None if of_w is None else chance.random(of_w) + 0.5
        x, residuals, fitted = reference(a, b, rows, w)
        turned = (lambda z: np.swapaxes(z, -1, -2) if z.ndim > 1 else z) if kind == "column" else (
            lambda z: z)
        files = [store(name, turned(array), kind) for name, array in (("A", a), ("B", b))]
        own = ["--order", "column"] if kind == "column" else []
        if w is not None:
            own += ["--weights", store("w", turned(w) if w.shape == b.shape else w, kind)]
        # More right sides of one A would be kept beside it.
        if route == "rows" and (lead or b.size <= 8 * m):
            own += ["--memory", "8MiB"]
        run("solve", *files, "x.h5", "-f", "--rows", rows, "--residuals", "--fitted", "--no-se",
            *own, *(() if route == "batch" else ("--variant", "cpu/tall")))
        with h5py.File("x.h5") as file:
            for name, wanted in (("X", x), ("residuals", residuals), ("fitted", fitted)):
                np.testing.assert_allclose(turned(file[name][...]).reshape(wanted.shape), wanted,
                                           atol=1e-9, err_msg=name)
        run("verify", *files, "x.h5", *own)
        if x.size == N or number % 2:
            return
        # The solutions of other right sides.
        with h5py.File("x.h5", "r+") as file:
            numbers = as_columns(a, turned(file["X"][...]), rows)
            file["X"][...] = turned(numbers[1](np.flip(
                numbers[0], [axis for axis in range(numbers[0].ndim) if axis != numbers[0].ndim - 2]
            )).reshape(x.shape))
        self.assertIn("fail", said("verify", *files, "x.h5", *own, status=1))

    def test_every_shape_is_right_on_every_route(self):
        all_shapes = list(shapes())
        self.assertGreater(len(all_shapes), 90)
        for number, (lead, dims, rows) in enumerate(all_shapes):
            for turn, route in enumerate(ROUTES):
                if not IS_LONG and number % 16 != turn and route != "batch":
                    continue
                with self.subTest(route=route, lead=lead, dims=dims, rows=rows):
                    self.check(number + turn, route, lead, dims, rows)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
