#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`qrtool solve` reads parts of every format, writes every format, and `verify` finds both
again."""
import json
import os
import random
import shutil
import sys
import unittest

import h5py
import numpy as np

from tool import FolderTest, said

NUMBERS = ("residual_norm", "backward_error", "least_norm_error", "status", "tries",
           "degrees_of_freedom", "rank", "condition", "scaled_condition")
ENDINGS = ("h5", "npz", "npy", "csv", "tsv", "mtx")


class SolveFiles(FolderTest):
    run_tool = staticmethod(said)

    def setUp(self):
        super().setUp()
        self.random = np.random.default_rng(7)

    def write(self, **arrays):
        with h5py.File("in.h5", "w") as file:
            for name, array in arrays.items():
                file[name] = array

    def read(self, out, name="X"):
        if out.endswith(".npz"):
            with np.load(out) as file:
                return file[name]
        if out.endswith(".h5"):
            with h5py.File(out) as file:
                return file[name.replace("report_", "report/")][...]
        stem, ending = out.rsplit(".", 1)
        if ending == "npy":
            return np.load(f"{stem}.{name}.npy")
        if ending == "mtx":
            with open(f"{stem}.{name}.mtx", encoding="utf-8") as file:
                rows, cols, *numbers = [word for line in file if line[0] != "%"
                                        for word in line.split()]
            return np.array(numbers, float).reshape(int(cols), int(rows)).T
        return np.loadtxt(f"{stem}.{name}.{ending}", delimiter="," if ending == "csv" else "\t",
                          ndmin=2)

    def test_files_of_two_runs_are_no_set(self):
        self.write(A=self.random.standard_normal((9, 3)), b=self.random.standard_normal((9, 2)),
                   c=self.random.standard_normal((9, 2)))
        for ending in ("npy", "csv", "tsv", "mtx"):
            names = [f"{{}}.{part}.{'csv' if part == 'report' and ending == 'tsv' else ending}"
                     for part in ("X", "se")]
            names.append("{}.report." + ("csv" if ending in ("csv", "tsv") else "json"))
            for right, out in (("b", "one"), ("c", "two")):
                self.run_tool("solve", "in.h5:/A", f"in.h5:/{right}", f"{out}.{ending}", "-q", "-f")
                self.run_tool("verify", "in.h5:/A", f"in.h5:/{right}", f"{out}.{ending}", "-q")
            for name in names:
                # A killed run leaves one file of another run.
                os.rename(name.format("one"), "kept")
                shutil.copy(name.format("two"), name.format("one"))
                said = self.run_tool("verify", "in.h5:/A", "in.h5:/b", f"one.{ending}", status=3)
                self.assertIn("are not the solutions that", said)
                os.replace("kept", name.format("one"))
            self.run_tool("verify", "in.h5:/A", "in.h5:/b", f"one.{ending}")
            # Without the report nothing binds the files.
            os.remove(names[-1].format("one"))
            self.run_tool("verify", "in.h5:/A", "in.h5:/b", f"one.{ending}")

    def test_coefficients_and_a_report_of_two_runs_are_no_set(self):
        for name in ("one", "two"):
            table = self.random.standard_normal((12, 4))
            np.savetxt(f"{name}-t.csv", table, delimiter=",", header="u,v,y,z", comments="")
        one = ("--response", "y")
        cases = {"csv": (one, (*one, "--precision", "single", "--covariance"),
                         ("--response", "y,z", "--no-se")),
                 "tsv": (one,), "txt": ((*one, "--covariance"),)}
        for ending, more in ((ending, more) for ending, each in cases.items() for more in each):
            for name in ("one", "two"):
                self.run_tool("solve", f"{name}-t.csv", f"{name}.{ending}", *more, "-q", "-f")
            parts = [f".{ending}", ".report.json"]
            parts += [f".covariance.{ending}"] if "--covariance" in more else []
            for part in parts:
                os.rename("one" + part, "kept")
                shutil.copy("two" + part, "one" + part)
                for options in ((), more[:2]):
                    self.assertIn(f"one.{ending}: these are not the solutions that "
                                  "one.report.json describes",
                                  self.run_tool("verify", "one-t.csv", f"one.{ending}",
                                                *options, status=3))
                os.replace("kept", "one" + part)
            self.run_tool("verify", "one-t.csv", f"one.{ending}")
            for name in os.listdir():
                if name.startswith(("one.", "two.")):
                    os.remove(name)

    def test_a_report_of_other_files_is_named(self):
        table = self.random.standard_normal((12, 3))
        np.savetxt("t.csv", table, delimiter=",", header="u,v,y", comments="")
        self.write(A=table[:, :2], b=table[:, 2])
        self.run_tool("factor", "in.h5:/A", "q.npy")
        self.run_tool("factor", "in.h5:/A", "q.mtx", "-f")
        runs = {"csv": ("t.csv", "--response", "y"), "npy": ("in.h5:/A", "in.h5:/b"),
                "mtx": ("in.h5:/A", "in.h5:/b")}
        for later, last in runs.items():
            for earlier, first in runs.items():
                if earlier == later:
                    continue
                self.run_tool("solve", first[0], *first[1:], f"x.{earlier}", "-f")
                self.run_tool("solve", last[0], *last[1:], f"x.{later}", "-f")
                said = self.run_tool("verify", first[0], *first[1:], f"x.{earlier}", status=3)
                self.assertIn(f"x.{earlier}: x.report.json is the report of x.{later}, which a "
                              "later run wrote\n", said)
                self.assertIn(f"hint: solve again, with another name before .{earlier}\n", said)
                self.run_tool("verify", last[0], *last[1:], f"x.{later}")
                # Without its report a table of coefficients is a table with names of rows.
                options = ("--index-column", "yes") if earlier == "csv" else ()
                self.run_tool("info", f"x.{earlier}", *options)
        said = self.run_tool("verify", "t.csv", "x.csv", status=3)
        self.assertIn("x.csv: x.report.json is the report of x.mtx", said)
        said = self.run_tool("verify", "in.h5:/A", "q.npy", status=3)
        self.assertIn("q.npy: q.report.json is the report of q.mtx, which a later run wrote\n",
                      said)
        self.assertIn("hint: factor again, with another name before .npy\n", said)
        self.run_tool("verify", "in.h5:/A", "q.mtx")
        # A report of CSV has a name of its own.
        self.run_tool("solve", "in.h5:/A", "in.h5:/b", "y.npy")
        self.write(A=table[:, :2], b=table[:, 1])
        self.run_tool("solve", "in.h5:/A", "in.h5:/b", "y.csv")
        self.run_tool("verify", "in.h5:/A", "in.h5:/b", "y.csv")

    def read_table(self, out):
        with open(out, encoding="utf-8") as file:
            lines = [line.split("\t" if out.endswith("tsv") else ",") for line in file]
        return np.array([float(line[1]) for line in lines[1:]])

    def test_every_format_gets_the_same_solutions(self):
        self.write(A=self.random.standard_normal((12, 4)), b=self.random.standard_normal((12, 6)))
        for ending in ENDINGS:
            out = f"{ending}.{ending}"
            self.assertIn("(X 4x6)", self.run_tool("solve", "in.h5:/A", "in.h5:/b", out))
            for name in ("X", "se"):
                np.testing.assert_array_equal(self.read(out, name), self.read("h5.h5", name),
                                              ending)
            for files in (("in.h5:/A", "in.h5:/b"),
                          *([("in.h5", "in.h5")] if ending not in ("csv", "tsv") else [])):
                self.assertIn("all 6 pass", self.run_tool("verify", *files, out))
            self.assertIn("exists", self.run_tool("solve", "in.h5:/A", "in.h5:/b", out, status=5))
        for name in NUMBERS:
            np.testing.assert_array_equal(self.read("npz.npz", "report_" + name),
                                          self.read("h5.h5", "report_" + name))

    def test_single_precision_is_judged_as_such_in_every_format(self):
        self.write(A=self.random.standard_normal((12, 4)).astype("f4"),
                   b=self.random.standard_normal(12).astype("f4"))
        for ending in ENDINGS:
            self.run_tool("solve", "in.h5:/A", "in.h5:/b", f"x.{ending}", "-f")
            self.assertIn("u = 2^-23", self.run_tool("verify", "in.h5:/A", "in.h5:/b",
                                                     f"x.{ending}"))

    def test_batches_are_written_with_their_shapes(self):
        a = self.random.standard_normal((2, 5, 12, 4))
        b = self.random.standard_normal((5, 12, 3)).astype("f4")
        a[1, 2, 3, 0] = np.nan
        self.write(A=a, b=b)
        for ending in ("h5", "npz", "npy"):
            self.run_tool("solve", "in.h5:/A", "in.h5:/b", f"x.{ending}", status=1)
            np.testing.assert_array_equal(self.read(f"x.{ending}"), self.read("x.h5"))
            self.assertEqual(self.read(f"x.{ending}").shape, (2, 5, 4, 3))
        with open("x.report.json", encoding="utf-8") as file:
            report = json.load(file)["report"]
        for name in NUMBERS:
            of_h5, of_npz = (self.read(file, "report_" + name) for file in ("x.h5", "x.npz"))
            np.testing.assert_array_equal(of_h5, of_npz)
            values = np.array(report[name]["values"], float).reshape(report[name]["shape"])
            np.testing.assert_array_equal(values, of_h5.astype(float))
        self.assertEqual(self.read("x.npz", "report_rank")[1, 2], -1)
        self.assertIn("holds one matrix, not 10",
                      self.run_tool("solve", "in.h5:/A", "in.h5:/b", "y.mtx", status=2))
        self.assertFalse([name for name in os.listdir() if "mtx" in name])

    def test_rows_of_text_are_one_matrix(self):
        self.write(A=self.random.standard_normal((12, 4)), b=self.random.standard_normal((7, 12)))
        for ending in ("h5", "csv", "mtx"):
            self.run_tool("solve", "in.h5:/A", "in.h5:/b", f"x.{ending}")
            self.assertEqual(self.read(f"x.{ending}").shape, (7, 4))
            np.testing.assert_array_equal(self.read(f"x.{ending}"), self.read("x.h5"))

    def test_numbers_say_what_they_are(self):
        self.write(A=self.random.standard_normal((12, 4)), b=self.random.standard_normal(12))
        self.run_tool("solve", "in.h5:/A", "in.h5:/b", "x.h5")
        self.run_tool("solve", "in.h5:/A", "in.h5:/b", "x.npy")
        with open("x.report.json", encoding="utf-8") as file:
            document = json.load(file)
        with h5py.File("x.h5") as file:
            for name in NUMBERS:
                told, column = dict(file["report"][name].attrs), document["report"][name]
                bar = told.pop("bar")
                told.pop("flag_meanings", None)
                self.assertEqual(told, {key: column[key]
                                        for key in ("description", "formula", "unit",
                                                    "bar_formula")})
                self.assertTrue(all(told.values()))
                self.assertEqual(None if np.isnan(bar) else bar, column["bar"])
                self.assertEqual(np.isnan(bar), told["bar_formula"] == "none")
            meanings = file["report/status"].attrs["flag_meanings"].split()
            self.assertEqual(meanings.index("x_overflows"), 3)
            self.assertLessEqual(file["report/backward_error"][()],
                                 file["report/backward_error"].attrs["bar"])
            attributes = document["qrtool"]
            self.assertRegex(attributes.pop("checksum"), "^0x[0-9a-f]{16}$")
            self.assertEqual(attributes.pop("described_ending"), ".npy")
            self.assertEqual({**attributes, "eps": None}, {**dict(file.attrs), "eps": None})

    def test_of_several_arrays_none_is_guessed(self):
        a, b = self.random.standard_normal((12, 4)), self.random.standard_normal(12)
        self.write(A=a, b=b)
        np.savez("in.npz", A=a, b=b)
        np.savez("vectors.npz", b=b, t=b)
        for name, slash, kind in (("in.h5", "/", "datasets of"), ("in.npz", "", "members with")):
            text = self.run_tool("solve", f"{name}:{slash}A", name, "x.h5", status=3)
            self.assertIn(f"{name}: 2 {kind} numbers: {slash}A (12x4 float64), {slash}b (12", text)
            self.assertIn(f"hint: choose one, as in {name}:{slash}b\n", text)
            self.run_tool("solve", name, f"{name}:{slash}b", "x.h5", "-f")
            np.testing.assert_allclose(self.read("x.h5"), np.linalg.lstsq(a, b, rcond=None)[0],
                                       atol=1e-12)
            os.remove("x.h5")
        text = self.run_tool("solve", "in.h5", "vectors.npz", "x.h5", status=3)
        self.assertIn("choose one, as in vectors.npz:b\n", text)

    def test_a_part_without_numbers_is_noted(self):
        self.write(A=np.ones((12, 4)), b=np.ones(12))
        text = self.run_tool("solve", "in.h5:/A[5:5]", "in.h5:/b[5:5]", "x.h5")
        self.assertIn("note: in.h5:/A[5:5] selects nothing (0x4)\n", text)
        self.assertIn("note: in.h5:/b[5:5] selects nothing (0)\n", text)
        self.assertNotIn("note", self.run_tool("solve", "in.h5:/A[5:5]", "in.h5:/b[5:5]", "x.h5",
                                               "-qf"))

    def test_verify_finds_what_the_command_line_stated(self):
        a, b = self.random.standard_normal((12, 3)), self.random.standard_normal((12, 12))
        a[:, 2] = a[:, 1] + 1e-8 * self.random.standard_normal(12)
        self.write(A=a, b=b)
        for ending in ENDINGS:
            files = "in.h5:/A", "in.h5:/b", f"{ending}.{ending}"
            self.run_tool("solve", *files, "--rows", "last", "--rank-tolerance", "1e-5", "-f")
            self.assertIn("all 12 pass", self.run_tool("verify", *files), ending)
        self.write(A=a[:, :2].T, b=b[:, :5].T)
        for ending in ENDINGS:
            files = "in.h5:/A", "in.h5:/b", f"{ending}.{ending}"
            self.run_tool("solve", *files, "--order", "column", "-f")
            self.assertIn("all 5 pass", self.run_tool("verify", *files), ending)
        with open("csv.se.csv", encoding="utf-8") as file:
            self.assertEqual(next(file), "# solve: order = column\n")

    def test_parts_of_arrays_are_numpys(self):
        a = self.random.standard_normal((12, 3))
        draw = random.Random(5)
        shapes = [(12,), (9, 12), (4, 5, 12), (2, 3, 4, 12)]
        for name in ("in.h5:/b", "b.npz:b", "b.npy:"):
            for _ in range(12):
                shape = draw.choice(shapes)
                b = self.random.standard_normal(shape)
                self.write(A=a, b=b)
                np.save("b.npy", b)
                np.savez("b.npz", b=b, other=a)
                # Of the batch an index or a slice; all of the last dimension, which is A's.
                parts = [draw.choice([str(draw.randrange(-n, n)), f"{draw.randrange(n)}:",
                                      f"::{draw.randrange(1, 4)}"])
                         for n in shape[:-1]]
                selection = "[" + ",".join(draw.choice([parts, ["..."], [*parts, ":"]])
                                           or [":"]) + "]"
                part = eval("b" + selection)
                if part.size == 0:
                    continue
                self.run_tool("solve", "in.h5:/A", name + selection, "x.h5", "-f", "--rows", "last")
                expected = np.linalg.lstsq(a, part.reshape(-1, 12).T, rcond=None)[0].T
                np.testing.assert_allclose(self.read("x.h5"), expected.reshape(*part.shape[:-1], 3),
                                           atol=1e-12,
                                           err_msg=selection)
                self.assertIn("pass", self.run_tool("verify", "in.h5:/A", name.split(":")[0],
                                                    "x.h5"))

    def test_an_index_may_take_the_last_dimension(self):
        a, b = self.random.standard_normal((12, 3)), self.random.standard_normal((4, 12, 5))
        self.write(A=a, b=b)
        np.save("b.npy", b)
        for name in ("in.h5:/b", "b.npy:"):
            for selection in ("[:, :, 2]", "[1, ::1, -1]", "[1:3, :, 0]"):
                part = eval("b" + selection)
                self.run_tool("solve", "in.h5:/A", name + selection, "x.h5", "-f", "--rows", "last")
                expected = np.linalg.lstsq(a, part.reshape(-1, 12).T, rcond=None)[0].T
                np.testing.assert_allclose(self.read("x.h5"), expected.reshape(*part.shape[:-1], 3),
                                           atol=1e-12)
            for selection, why in (("[1, 2, 3]", "leave a single number"),
                                   ("[4, :, 0]", "index 4 is outside"),
                                   ("[0, 0, 0, 0]", "4 slices for 3 dimensions (4x12x5)")):
                self.assertIn(why, self.run_tool("solve", "in.h5:/A", name + selection, "x.h5",
                                                 "-f", status=3))

    def test_parts_of_a_and_b_belong_together(self):
        a, b = self.random.standard_normal((9, 12, 3)), self.random.standard_normal((9, 12))
        self.write(A=a, B=b, other=b)
        for ending in ("h5", "npz", "npy"):
            out = f"{ending}.{ending}"
            self.run_tool("solve", "in.h5:/A[2:7]", "in.h5:/B[2:7]", out)
            expected = np.stack([np.linalg.lstsq(*each, rcond=None)[0]
                                 for each in zip(a[2:7], b[2:7])])
            np.testing.assert_allclose(self.read(out), expected, atol=1e-12)
            self.assertIn("all 5 pass", self.run_tool("verify", "in.h5", "in.h5", out))
            self.assertIn("5 of 5", self.run_tool("verify", "in.h5:/A[1:6]", "in.h5", out, status=1)
                          .replace("0 of 5 pass, 5", "5 of 5"))
        self.assertIn("name A and B as", self.run_tool("verify", "in.h5", "in.h5", "h5.h5",
                                                       "--dataset", "A", status=2))

    def test_dialects_of_text(self):
        a, b = self.random.standard_normal((12,
                                            3)).round(3), self.random.standard_normal(12).round(3)
        with open("a.csv", "w", encoding="utf-8") as file:
            file.write("made by hand\n" + "".join("|".join(map(str, row)) + "\n"
                                                  for row in a).replace(".", ","))
        with open("b.csv", "w", encoding="utf-8") as file:
            file.write("left out\n" + "".join(f"{number}\n" for number in b).replace(".", ","))
        options = ("--delimiter", "pipe", "--decimal", "comma", "--skip-rows", "1")
        expected = np.linalg.lstsq(a, b, rcond=None)[0]
        for ending in ENDINGS:
            out = f"{ending}.{ending}"
            self.run_tool("solve", "a.csv", "b.csv", out, *options)
            np.testing.assert_allclose(self.read(out).ravel(), expected, atol=1e-12)
            more = options if ending in ("csv", "tsv") else ()
            self.assertIn("passes", self.run_tool("verify", "a.csv", "b.csv", out, *more))
        np.save("a.npy", a)
        self.assertIn("no CSV file", self.run_tool("solve", "a.npy", "a.npy", "y.h5", *options,
                                                   status=2))
        self.run_tool("solve", "a.npy", "b.csv", "x.h5", "-f", "--decimal", "comma", "--skip-rows",
                      "1")
        np.testing.assert_allclose(self.read("x.h5").ravel(), expected, atol=1e-12)

    def test_a_table_of_excel(self):
        table = self.random.standard_normal((12, 3)).round(3)
        with open("table.csv", "w", encoding="utf-8") as file:
            file.write(";h;w;y\n")
            for i, row in enumerate(table):
                file.write(";".join([str(i), *map(str, row)]).replace(".", ",") + "\n")
        design = np.hstack([np.ones((12, 1)), table[:, :2]])
        expected = np.linalg.lstsq(design, table[:, 2], rcond=None)[0]
        for ending in ENDINGS:
            out = f"{ending}.{ending}"
            said = self.run_tool("solve", "table.csv", out, "--response", "y", "--intercept")
            self.assertIn("the first column is left out as an index", said)
            x = self.read_table(out) if ending in ("csv", "tsv") else self.read(out)
            np.testing.assert_allclose(x.ravel(), expected, atol=1e-12)
            self.assertIn("passes", self.run_tool("verify", "table.csv", out, "--response", "y"))
            self.assertIn("passes", self.run_tool("verify", "table.csv", out))
        self.run_tool("solve", "table.csv", "x.h5", "-f", "--response", "y", "--columns", "w,y",
                      "-q")
        np.testing.assert_allclose(self.read("x.h5").ravel(),
                                   np.linalg.lstsq(table[:, 1:2], table[:, 2], rcond=None)[0])
        self.assertIn("passes", self.run_tool("verify", "table.csv", "x.h5", "--response", "y"))

    def test_mistakes_with_solutions_are_named(self):
        a, b = self.random.standard_normal((12, 3)), self.random.standard_normal(12)
        self.write(A=a, b=b)
        files = "in.h5:/A", "in.h5:/b", "x.h5"
        self.run_tool("solve", *files)
        for order in (files[::-1], (files[2], *files[:2])):
            self.assertIn("hint: the solutions come last: qrtool verify A B x.h5\n",
                          self.run_tool("verify", *order, status=3))
        self.assertIn("--criteria is for factors",
                      self.run_tool("verify", *files, "--criteria", "m-eps", status=2))
        # What X records of B is not what is meant of a table.
        np.savetxt("t.csv", np.column_stack([a, b]), delimiter=",", header="u,v,w,y", comments="")
        text = self.run_tool("verify", "t.csv", "x.h5", "--response", "y", status=3)
        self.assertIn("x.h5: the shapes do not fit: X is 3, and for A 12x3 and B 12x1 it is 3x1",
                      text)

    def test_solutions_of_others(self):
        a, b = self.random.standard_normal((12, 3)), self.random.standard_normal(12)
        self.write(A=a, b=b)
        x = np.linalg.lstsq(a, b, rcond=None)[0]
        np.savez("y.npz", other=a, x=x)
        np.save("y.npy", x)
        for name in ("y.npz", "y.npz:x", "y.npy"):
            self.assertIn("passes", self.run_tool("verify", "in.h5:/A", "in.h5:/b", name))
        np.savez("y.npz", x=x + 1e-6)
        self.assertIn("fails", self.run_tool("verify", "in.h5:/A", "in.h5:/b", "y.npz", status=1))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
