#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""qrtool info, and qrtool FILE: what a new user asks of a file before and after a run, in every
format."""
import json
import re
import sys
import unittest

import h5py
import numpy as np

from tool import FolderTest, said as run

ENDINGS = ("h5", "npz", "npy", "csv")


def info(*args):
    return json.loads(run("info", *args, "--json"))


class Info(FolderTest):
    def setUp(self):
        super().setUp()
        self.a = np.random.default_rng(3).standard_normal((20, 9, 4)).astype(np.float32)

    def write(self, **datasets):
        with h5py.File("a.h5", "w") as file:
            for name, value in datasets.items():
                file[name] = value

    def test_a_file_alone_is_info(self):
        self.write(A=self.a)
        self.assertEqual(run("a.h5"), run("info", "a.h5"))
        for args in (("a.h5:/A", "--json"), ("--json", "a.h5:/A"),
                     ("--order", "row", "--json", "a.h5:/A")):
            self.assertEqual(json.loads(run(*args))["factor_reads"],
                             info("a.h5:/A")["factor_reads"])
        text = run("a.h5")
        self.assertRegex(text, r"/A +20x9x4 +float32 +20 matrices of 9x4, by rows")
        self.assertIn("factor reads /A: 20 matrices of 9x4, and computes in float32", text)

    def test_every_dataset_is_listed_with_what_hinders_it(self):
        self.write(A=self.a, B=self.a[0], b=self.a[0, :, 0], names="text",
                   z=np.ones((3, 3), complex))
        found = info("a.h5")
        self.assertEqual([each["name"] for each in found["datasets"]],
                         ["/A", "/B", "/b", "/names", "/z"])
        self.assertEqual([each["matrices"] is not None for each in found["datasets"]],
                         [True, True, False, False, True])
        self.assertIsNone(found["factor_reads"])
        self.assertIn("3 datasets of matrices", found["objection"])
        self.assertIn("as in a.h5:/A", found["hint"])
        text = run("a.h5")
        self.assertRegex(text, r"/b +9 +float32 +a vector; solve takes it as b")
        self.assertRegex(text, r"/z .*complex128")
        self.assertIn("factor stops here: a.h5: 3 datasets", text)
        narrow = info("a.h5:/B[1:3]")
        self.assertEqual((narrow["factor_reads"]["shape"], len(narrow["datasets"])), ([2, 4], 1))
        self.assertEqual(info("a.h5", "--dataset", "/b")["datasets"][0]["stored_shape"], [9])

    def test_what_factor_says_of_the_input_is_what_info_says(self):
        self.write(wide=self.a[0].T)
        self.assertIn("note: /wide is read as 4x9", run("a.h5"))
        self.assertIn("--order column", run("a.h5"))
        found = info("a.h5", "--order", "column")["factor_reads"]
        self.assertEqual((found["shape"], found["order"], found["notes"]), ([9, 4], "column", []))
        with open("t.csv", "w", encoding="ascii") as file:
            file.write(",x,y\n0,1.5,2\n1,2.5,4\n2,3.5,9\n")
        text = run("t.csv")
        self.assertIn("a matrix of 3x2", text)
        self.assertIn("columns x, y", text)
        self.assertRegex(text, "note: .*index")
        self.assertEqual(info("t.csv", "--columns", "y")["factor_reads"]["columns"], ["y"])
        self.assertIn("a matrix of 2x2", run("info", "-", input="1,2\n3,4\n"))

    def test_coordinates_are_named(self):
        with h5py.File("c.h5", "w") as file:
            file["A"], file["x"] = self.a, np.arange(4.0)
            file["x"].make_scale("x")
        self.assertRegex(run("c.h5"), r"/x +4 +float64 +coordinates of a dimension")
        self.assertIn("factor reads /A", run("c.h5"))

    def test_arrays_of_numpy(self):
        np.save("f.npy", np.asfortranarray(self.a[0]))
        np.savez("m.npz", A=self.a, b=self.a[0, :, 0], words=np.array(["a", "b"]))
        self.assertEqual(info("f.npy")["factor_reads"]["shape"], [9, 4])
        names = {each["name"]: each["matrices"] is not None for each in info("m.npz")["datasets"]}
        self.assertEqual(names, {"A": True, "b": False, "words": False})
        self.assertEqual(info("m.npz:A")["factor_reads"]["dataset"], "A")
        np.save("v.npy", self.a[0, 0])
        self.assertIn("a vector", run("v.npy"))

    def test_factors_in_every_format_tell_how_they_were_made(self):
        self.a[3, 0, 0] = np.nan
        self.write(A=self.a)
        for ending in ENDINGS:
            run("factor", "a.h5", f"q.{ending}", "--report", "r.json", "-f", status=1)
            with open("r.json", encoding="ascii") as file:
                lines = json.load(file)["matrices"]
            (output,) = info(f"q.{ending}")["outputs"]
            self.assertEqual((output["kind"], output["count"]), ("factors", 20))
            self.assertEqual((output["status"]["ok"], output["status"]["non_finite"]), (19, 1))
            if ending != "csv":
                self.assertEqual(output["attributes"]["source_file"], "a.h5")
                self.assertEqual(output["attributes"]["variant"][:4], "cpu/")
            for error in output["errors"]:
                values = [line[error["name"]] for line in lines if line[error["name"]] is not None]
                self.assertEqual(error["worst"], max(values))
                self.assertAlmostEqual(error["bar"], 16 * 2.0**-23)
                counts = output["histogram"]["counts"][error["name"]]
                edges = output["histogram"]["edges"]
                expected = np.histogram(np.array(values) / error["bar"], [0, *edges, np.inf])[0]
                self.assertEqual(counts, expected.tolist())
            text = run(f"q.{ending}")
            self.assertIn("20 matrices: 19 ok, 1 not finite; 0 by a second try", text)
            self.assertRegex(text, r"residual +at most \S+, \S+ of its bar 1.9e-06 \(matrix \d+\)")
            self.assertIn("####################", text)

    def test_second_tries_and_errors_above_the_bar(self):
        self.write(A=self.a)
        run("factor", "a.h5", "q.h5")
        with h5py.File("q.h5", "r+") as file:
            file["report/tries"][2:5] = 2
            file["report/residual"][7] = 1e-3
            file["report/status"][7] = 1
        (output,) = info("q.h5")["outputs"]
        self.assertEqual((output["second_tries"], output["status"]["above_bar"]), (3, 1))
        self.assertEqual((output["errors"][0]["worst"], output["errors"][0]["at"]), (1e-3, 7))
        self.assertGreater(output["errors"][0]["ratio"], 100)
        self.assertEqual(sum(output["histogram"]["counts"]["residual"]), 20)
        self.assertIn("20 matrices: 19 ok, 1 above the bar; 3 by a second try", run("q.h5"))

    def test_one_file_of_a_set_stands_for_the_set(self):
        self.write(A=self.a)
        for ending in ("npy", "csv"):
            run("factor", "a.h5", f"s.{ending}")
            self.assertEqual(info(f"s.Q.{ending}")["outputs"], info(f"s.{ending}")["outputs"])
            self.assertEqual(len(info(f"s.{ending}")["files"]), 3)
        self.assertEqual(info("s.report.json")["file"], "s.npy")
        self.assertEqual(info("s.report.csv")["file"], "s.csv")

    def test_modes_and_several_datasets(self):
        self.write(A=self.a, B=self.a[:5])
        run("factor", "a.h5:/A", "raw.npz", "--mode", "raw")
        self.assertAlmostEqual(info("raw.npz")["outputs"][0]["errors"][0]["bar"], 16 * 2.0**-23)
        run("factor", "a.h5:/A", "r.npz", "--mode", "r")
        (output,) = info("r.npz")["outputs"]
        self.assertEqual([error["bar"] for error in output["errors"]], [None, None])
        self.assertIn("its bar is not in the file", run("r.npz"))
        run("factor", "a.h5:/A", "r.h5", "--mode", "r")
        self.assertAlmostEqual(info("r.h5")["outputs"][0]["errors"][0]["bar"], 16 * 2.0**-23)
        run("factor", "a.h5", "both.h5", "--dataset", "/A", "--dataset", "/B")
        self.assertEqual([(each["dataset"], each["count"]) for each in info("both.h5")["outputs"]],
                         [("/A", 20), ("/B", 5)])

    def test_solutions_in_every_format(self):
        self.write(A=self.a, b=self.a[:, :, 0])
        for ending in ENDINGS:
            run("solve", "a.h5:/A", "a.h5:/b", f"x.{ending}", "-f")
            (output,) = info(f"x.{ending}")["outputs"]
            self.assertEqual((output["kind"], output["count"], output["status"]["ok"]),
                             ("solutions", 20, 20))
            self.assertEqual(output["status"]["x_overflows"], 0)  # the name that solve --json has
            self.assertNotIn("r_overflows", output["status"])
            self.assertEqual(output["errors"][0]["name"], "backward_error")
            self.assertLess(output["errors"][0]["worst"], 1e-6)
            text = run(f"x.{ending}")
            self.assertIn("20 solutions: 20 ok", text)
            # A report in CSV has no place for the bar.
            if ending != "csv":
                self.assertAlmostEqual(output["errors"][0]["bar"], 16 * 2.0**-23)
                self.assertIn("of its bar 1.9e-06", text)

    def test_solutions_of_a_table(self):
        with open("t.csv", "w", encoding="ascii") as file:
            file.write("a,b,y\n1,2,3\n2,5,5\n4,1,4\n1,9,2\n3,3,3\n")
        for ending in ENDINGS:
            for option, words in (((), ""), (("--intercept",), "with an intercept, ")):
                run("solve", "t.csv", f"x.{ending}", "--response", "y", "-f", *option)
                self.assertIn(f"from t.csv, response y, {words}double", run(f"x.{ending}"))

    def test_what_cannot_be_read_exits_as_everywhere(self):
        self.write(A=self.a)
        self.assertIn("did you mean 'factor'", run("facto", status=2))
        self.assertIn("none.h5", run("none.h5", status=3))
        self.assertIn("there is no dataset /none", run("info", "a.h5:/none", status=3))
        self.assertIn("FILE is missing", run("info", status=2))
        text = run("a.h5", "q.h5", status=2)
        self.assertIn("a command is missing before 'a.h5'", text)
        self.assertIn("qrtool factor a.h5 q.h5", text)
        with open("a.h5", "r+b") as file:
            file.truncate(900)
        self.assertTrue(re.search("truncated|damaged", run("a.h5", status=3)))
        with h5py.File("empty.h5", "w"):
            pass
        self.assertIn("holds no dataset", run("empty.h5", status=3))

    def test_names_from_a_file_cannot_move_the_cursor(self):
        self.write(**{"A\x1b[2J": self.a})
        self.assertNotIn("\x1b", run("a.h5"))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=1)
