#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The recipes of qrtool(7): what people do with `solve` in files that their own tools wrote, beside
what these tools or a loop of NumPy make of them."""
import csv
import sys
import unittest

import h5py
import numpy as np

from tool import FolderTest, run, said


def least_squares(a, b, w=None):
    root = np.ones(len(b)) if w is None else np.sqrt(w)
    return np.linalg.lstsq(a * root[:, None], b * root, rcond=None)[0]


class Recipes(FolderTest):
    def setUp(self):
        super().setUp()
        self.random = np.random.default_rng(7)

    def test_regress_out(self):
        """Counts of genes without what the total count and the share of mitochondria explain, as
        scanpy.pp.regress_out. AnnData keeps X and the columns of obs as datasets."""
        cells, genes = 500, 60
        total = self.random.uniform(1e3, 1e4, cells)
        share = self.random.uniform(0, 20, cells).astype("f4")
        x = self.random.poisson(total[:, None] / 2e3, (cells, genes)).astype("f4")
        with h5py.File("pbmc.h5ad", "w") as file:
            file["X"] = np.log1p(x)
            file["obs/total_counts"], file["obs/pct_counts_mt"] = total, share
            file["X"].attrs["encoding-type"] = "array"
        run("solve", "pbmc.h5ad", "pbmc.h5ad:/X", "out.h5", "--a",
            "obs/total_counts,obs/pct_counts_mt", "--intercept", "--rows", "first", "--residuals")
        design = np.column_stack([np.ones(cells), total, share])
        b = np.log1p(x).astype(float)
        wanted = b - design @ np.linalg.lstsq(design, b, rcond=None)[0]
        with h5py.File("out.h5") as file:
            self.assertEqual(file["residuals"].shape, (cells, genes))
            self.assertEqual(file["residuals"].dtype, np.float32)
            np.testing.assert_allclose(file["residuals"][...], wanted, atol=1e-6)
            self.assertEqual(file.attrs["columns"],
                             "(intercept),obs/total_counts,obs/pct_counts_mt")
        run("verify", "pbmc.h5ad", "pbmc.h5ad:/X", "out.h5")

    def test_missing_values_of_anndata(self):
        """The code -1 is no category, and a mask beside values says which are missing."""
        cells = 60
        codes = self.random.integers(-1, 3, cells)
        masks = {name: self.random.random(cells) < 0.2 for name in ("dose", "size", "is_new")}
        values = {"dose": self.random.integers(1, 9, cells),
                  "size": self.random.standard_normal(cells),
                  "is_new": self.random.integers(0, 2, cells).astype(np.uint8)}
        x = self.random.standard_normal((cells, 2)).astype("f4")

        def store(kind, **how):
            with h5py.File("a.h5ad", "w") as file:
                file["X"] = x
                file["obs/stage/categories"] = [b"a", b"b", b"c"]
                file["obs/stage/codes"] = codes.astype(kind)
                file["obs/stage"].attrs.update({"encoding-type": "categorical", "ordered": True})
                file["obs/old"] = codes.astype(kind)
                file["obs/__categories/old"] = [b"a", b"b", b"c"]
                file["obs/old"].attrs["categories"] = file["obs/__categories/old"].ref
                for name, mask in masks.items():
                    group = file.create_group(f"obs/{name}")
                    group.attrs["encoding-type"] = "nullable-" + (
                        "boolean" if name == "is_new" else "integer")
                    group.create_dataset("values", data=values[name], **how)
                    group.create_dataset("mask", data=mask, **how)

        def solve(names, columns):
            options = "a.h5ad", "a.h5ad:/X", "o.npz", "-f", "--a", names, "--intercept"
            run("solve", *options, status=1)
            said = run("solve", *options, "--missing", "skip").stderr
            with np.load("o.npz") as file:
                found = file["X"]
            design = np.column_stack([np.ones(cells), *columns])
            rows = ~np.isnan(design).any(axis=1)
            wanted = np.linalg.lstsq(design[rows], x[rows].astype(float), rcond=None)[0]
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
            return said

        of_codes = np.where(codes < 0, np.nan, codes)
        hidden = {name: np.where(masks[name], np.nan, values[name]) for name in masks}
        for kind, how in (("i1", {}), ("i8", {"chunks": (7,), "compression": "gzip"})):
            store(kind, **how)
            self.assertIn("-1 is none", solve("obs/stage/codes", [of_codes]))
            solve("obs/old", [of_codes])
            solve("obs/stage/codes,obs/dose/values,obs/size/values,obs/is_new/values",
                  [of_codes, *hidden.values()])
        run("solve", "a.h5ad", "a.h5ad:/X", "o.npz", "-f", "--a", "obs/stage/codes,obs/dose/values",
            "--raw-values")
        for name, dataset in (("stage", "codes"), ("dose", "values")):
            said = run("solve", "a.h5ad", "a.h5ad:/X", "o.npz", "-f", "--a", f"obs/{name}",
                       status=3).stderr
            self.assertIn(f"choose one, as in a.h5ad:/obs/{name}/{dataset}\n", said)
        part = "a.h5ad:/obs/dose/values[3:40:2]"
        run("solve", "a.h5ad:/X[3:40:2]", part, "o.npz", "-f", "--missing", "skip")
        with np.load("o.npz") as file:
            some = hidden["dose"][3:40:2]
            is_there = ~np.isnan(some)
            np.testing.assert_allclose(
                file["X"], np.linalg.lstsq(x[3:40:2][is_there], some[is_there], rcond=None)[0],
                rtol=1e-5)
        with h5py.File("a.h5ad", "r+") as file:
            del file["obs/dose/mask"]
            file["obs/dose/mask"] = np.zeros(3, bool)
        self.assertIn("is to have a mask", run("solve", "a.h5ad", "a.h5ad:/X", "o.npz", "-f", "--a",
                                               "obs/dose/values", status=3).stderr)

    def test_trend_of_each_pixel(self):
        """Of a packed variable with gaps, over the time coordinate, which may be packed itself. The
        numbers of time are those of its `units`, decoded as xarray decodes a variable."""
        try:
            import netCDF4  # pylint: disable=import-outside-toplevel
            import xarray  # pylint: disable=import-outside-toplevel
        except ImportError:
            self.skipTest("netCDF4 and xarray are not installed")
        steps = 48
        hours = 24 * 365 * 90 + 24 * 30 * np.arange(steps)
        with netCDF4.Dataset("era.nc", "w") as file:
            for name, extent in (("time", steps), ("lat", 5), ("lon", 4)):
                file.createDimension(name, extent)
            time = file.createVariable("time", "i2", ("time",))
            time.units, time.scale_factor, time.add_offset = "hours since 1900-01-01", 24.0, 788400
            time[:] = hours
            t2m = file.createVariable("t2m", "i2", ("time", "lat", "lon"), fill_value=-32767)
            t2m.scale_factor, t2m.add_offset = 0.01, 280.0
            warming = 1e-4 * (hours - hours[0])
            t2m[:] = 280 + warming[:, None, None] + self.random.standard_normal((steps, 5, 4))
            t2m[7, 1, 2] = np.ma.masked
        with xarray.open_dataset("era.nc", decode_times=False) as data:
            np.testing.assert_array_equal(data["time"], hours)
            is_missing = np.isnan(data["t2m"].values)
        with h5py.File("era.nc") as file:  # xarray decodes to float32
            b = np.where(is_missing, np.nan, file["t2m"][...] * 0.01 + 280)
        for degree in (1, 2):
            run("solve", "era.nc", "era.nc:/t2m", "trend.nc", "-f", "--a", "time", "--polynomial",
                f"time:{degree}", "--intercept", "--missing", "skip")
            with xarray.open_dataset("trend.nc") as found:
                x = found["X"].values
                self.assertEqual(found["X"].dims[1:], ("lat", "lon"))
                self.assertEqual(found.attrs["columns"],
                                 ["(intercept),time", "(intercept),time,time^2"][degree - 1])
            centre = hours.mean()
            near = np.vander(hours - centre, degree + 1, increasing=True)
            for i, j in np.ndindex(5, 4):
                counts = ~np.isnan(b[:, i, j])
                c = least_squares(near[counts], b[counts, i, j])
                if degree == 2:  # of powers of hours - centre to powers of hours
                    c = [c[0] - c[1] * centre + c[2] * centre ** 2, c[1] - 2 * c[2] * centre, c[2]]
                else:
                    c = [c[0] - c[1] * centre, c[1]]
                np.testing.assert_allclose(x[:, i, j], c, rtol=1e-5)
            run("verify", "era.nc", "era.nc:/t2m", "trend.nc")

    def test_weights_of_each_pixel(self):
        """Displacements of InSAR: one network of interferograms, and the coherence of each pixel in
        each of them as its weight. A loop over pixels today."""
        dates, pixels = 12, 300
        pairs = [(i, j) for i in range(dates) for j in range(i + 1, min(i + 4, dates))]
        design = np.zeros((len(pairs), dates - 1))
        for row, (i, j) in enumerate(pairs):
            design[row, i:j] = 1  # the steps between the two dates
        steps = self.random.standard_normal((pixels, dates - 1))
        for kind, rtol in (("f8", 1e-9), ("f4", 1e-4)):
            phase = steps @ design.T + 0.1 * self.random.standard_normal((pixels, len(pairs)))
            weight = self.random.uniform(0.05, 1, phase.shape) ** 2
            weight[self.random.random(phase.shape) < 0.1] = 0
            weight[5] = 0
            weight[5, :3] = 1  # three interferograms do not determine eleven steps
            phase, weight = phase.astype(kind), weight.astype(kind)
            np.save("design.npy", design.astype(kind))
            np.save("phase.npy", phase)
            np.save("weight.npy", weight)
            text = said("solve", "design.npy", "phase.npy", "x.npz", "-f", "--weights",
                        "weight.npy", "--backend", "cpu")
            self.assertIn("1 of 300 solutions has too few rows", text)
            with np.load("x.npz") as found:
                x, se = found["X"], found["se"]
                status, norm = found["report_status"], found["report_residual_norm"]
                freedom = found["report_degrees_of_freedom"]
            self.assertEqual([list(status).count(s) for s in (0, 5)], [pixels - 1, 1])
            self.assertTrue(np.isnan(x[5]).all())
            for pixel in set(range(pixels)) - {5}:
                w = weight[pixel].astype(float)
                wanted = least_squares(design, phase[pixel].astype(float), w)
                r = np.sqrt(w) * (phase[pixel] - design @ wanted)
                np.testing.assert_allclose(x[pixel], wanted, rtol=rtol, atol=rtol)
                np.testing.assert_allclose(norm[pixel], np.linalg.norm(r), rtol=1e-4)
                self.assertEqual(freedom[pixel], (w > 0).sum() - (dates - 1))
                inverse = np.linalg.inv(design.T @ (w[:, None] * design))
                errors = np.linalg.norm(r) * np.sqrt(np.diag(inverse) / freedom[pixel])
                np.testing.assert_allclose(se[pixel], errors, rtol=1e-4)
            run("verify", "design.npy", "phase.npy", "x.npz", "--weights", "weight.npy")

    def test_a_regression_for_each_date(self):
        """Returns of shares on two factors, as Fama and MacBeth."""
        rows = []
        for day in range(20):
            for share in range(15 + day % 3):
                size, value = self.random.standard_normal(2)
                rows.append((f"2024-01-{day + 1:02}", share, size, value,
                             0.1 * size - 0.2 * value + self.random.standard_normal()))
        self.random.shuffle(rows)
        with open("returns.csv", "w", encoding="utf-8") as file:
            file.write("date,share,size,value,return\n")
            file.writelines(",".join(map(str, row)) + "\n" for row in rows)
        run("solve", "returns.csv", "premia.csv", "--response", "return", "--by", "date",
            "--columns", "date,size,value,return", "--intercept")
        with open("premia.csv", encoding="utf-8") as file:
            found = list(csv.DictReader(file))
        self.assertEqual(len(found), 20)
        for line in found:
            day = [row for row in rows if row[0] == line["date"]]
            a = np.array([(1, float(row[2]), float(row[3])) for row in day])
            x = least_squares(a, np.array([float(row[4]) for row in day]))
            for name, each in zip(("(intercept)", "size", "value"), x):
                self.assertAlmostEqual(float(line[name]), each, places=10)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
