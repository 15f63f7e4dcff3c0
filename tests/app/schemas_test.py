#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every JSON document that the tool prints is as man/schemas says, and has no field that is not
described there."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import h5py
import jsonschema
import numpy as np

QRTOOL, ROOT = sys.argv[1], pathlib.Path(sys.argv[2])
SCHEMAS = ROOT / "man/schemas"
DIGITS = str(ROOT / "samples/digits.h5") + ":/images"
LONGLEY = str(ROOT / "samples/longley.csv")


def closed(schema):
    """The schema with fields that it does not describe forbidden."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: closed(value) for key, value in schema.items()}
    is_reference = list(result.get("properties", {})) == ["schema"]  # to another document
    if "properties" in result and not is_reference:
        result.setdefault("additionalProperties", False)
    return result


def undescribed(schema, document):
    """Messages of everything in which a document differs from a schema."""
    return [f"{error.json_path}: {error.message}"
            for error in jsonschema.Draft202012Validator(closed(schema)).iter_errors(document)]


def not_a_number(text):
    raise ValueError(f"{text} is not JSON")


class Schemas(unittest.TestCase):
    seen = set()

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="qrtool-schemas-")
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return str(pathlib.Path(self.folder.name) / name)

    def check(self, text, name):
        document = json.loads(text, parse_constant=not_a_number)
        self.assertEqual(document["schema"], f"qrtool.{name}/1", document)
        schema = json.loads((SCHEMAS / f"{name}-1.schema.json").read_text())
        self.assertEqual(undescribed(schema, document), [])
        self.seen.add(name)
        return document

    def run_json(self, name, *args, status=0, stdin=None):
        done = subprocess.run([QRTOOL, *args, "--json"], capture_output=True, text=True,
                              timeout=300, check=False,
                              input=stdin)
        self.assertEqual(done.returncode, status, (args, done.stderr))
        return self.check(done.stdout, name)

    def write_matrices(self, count):
        a = np.random.default_rng(1).standard_normal((count, 5, 3))
        with h5py.File(self.path("a.h5"), "w") as file:
            file["A"] = a
        return a

    def test_schemas_are_schemas(self):
        for path in SCHEMAS.glob("*.json"):
            jsonschema.Draft202012Validator.check_schema(json.loads(path.read_text()))

    def test_factor_and_verify(self):
        for mode in ("reduced", "complete", "r", "raw"):
            result = self.run_json("factor", "factor", DIGITS, self.path("q.h5"), "-f", "--mode",
                                   mode)
            self.assertEqual((result["ranks"], result["first_failures"]), (1, []))
            self.run_json("verify", "verify", DIGITS, self.path("q.h5"))
        for name in ("p.h5", "p.npy"):
            result = self.run_json("factor", "factor", DIGITS, self.path(name), "--pivot",
                                   "--condition")
            self.assertEqual((result["rank"]["full"], result["output"]["datasets"][2]["type"]),
                             (8, "int32"))
            self.assertTrue(self.run_json("verify", "verify", DIGITS,
                                          self.path(name))["factors"]["pivoted"])
        self.check(pathlib.Path(self.path("p.report.json")).read_text(), "report")
        self.run_json("factor", "factor", LONGLEY, self.path("q.csv"), "--report",
                      self.path("r.json"))
        self.check(pathlib.Path(self.path("r.json")).read_text(), "report")
        self.run_json("verify", "verify", LONGLEY, self.path("q.csv"), "--all")
        design = ("--intercept", "--missing", "skip")
        self.run_json("factor", "factor", LONGLEY, self.path("d.h5"), *design)
        self.run_json("verify", "verify", LONGLEY, self.path("d.h5"))
        self.run_json("dry-run", "factor", LONGLEY, self.path("d.npy"), "--dry-run", *design)
        self.run_json("factor", "factor", LONGLEY, self.path("q.npy"))
        self.check(pathlib.Path(self.path("q.report.json")).read_text(), "report")

    def test_solve_and_its_verify(self):
        a = self.write_matrices(6)
        a[2, 0, 0] = np.nan
        a[3, :, 2] = a[3, :, 1]
        with h5py.File(self.path("a.h5"), "w") as file:
            file["A"], file["b"] = a, a[:, :, 0]
        files = (self.path("a.h5") + ":/A", self.path("a.h5") + ":/b")
        result = self.run_json("solve", "solve", *files, self.path("x.npy"), status=1)
        self.assertEqual((result["check"]["failed"], result["check"]["deficient"]), (1, 1))
        report = self.check(pathlib.Path(self.path("x.report.json")).read_text(), "solution-report")
        self.assertEqual(report["report"]["status"]["values"], [0, 0, 2, 0, 0, 0])
        self.assertIsNone(report["report"]["backward_error"]["values"][2])
        self.assertEqual(report["report"]["rank"]["values"], [3, 3, -1, 2, 3, 3])
        failures = self.run_json("verify-solutions", "verify", *files, self.path("x.npy"),
                                 status=1)["first_failures"]
        self.assertEqual([each["solution"] for each in failures], [2])
        self.run_json("verify-solutions", "verify", *files, self.path("x.npy"), "--all", status=1)
        table = (str(ROOT / "samples/strd/longley.csv"), self.path("t.mtx"), "--response", "y")
        self.run_json("solve", "solve", *table, "--intercept", "--basic")
        self.run_json("verify-solutions", "verify", *table)
        groups = (str(ROOT / "samples/returns.csv"), self.path("g.csv"), "--response", "return")
        result = self.run_json("solve-by", "solve", *groups, "--by", "date", "--intercept")
        self.assertEqual((result["groups"], result["check"]["singular"]), (5, 1))
        for out in ("w.csv", "w.npy"):
            result = self.run_json("solve-window", "solve", groups[0], self.path(out), "--response",
                                   "return", "--a", "beta", "--window", "9", "--min-rows", "4")
            self.assertEqual(result["check"]["status"]["too_few_rows"], 3)

    def test_apply(self):
        self.write_matrices(6)
        np.save(self.path("b.npy"), np.ones((5, 2)))
        for mode in ("reduced", "raw"):
            self.run_json("factor", "factor", self.path("a.h5"), self.path("q.h5"), "-f", "--mode",
                          mode)
            given = ("apply", self.path("q.h5"), self.path("b.npy"), self.path("x.npy"), "-f")
            result = self.run_json("apply", *given)
            self.assertEqual((result["check"]["passed"], result["with"]), (12, "qt"))
            self.check(pathlib.Path(self.path("x.report.json")).read_text(), "solution-report")
            self.run_json("dry-run", *given, "--dry-run")
        np.save(self.path("b.npy"), np.full((3, 2), np.nan))
        result = self.run_json("apply", *given, "--with", "rinv", status=1)
        self.assertEqual(result["check"]["status"]["non_finite"], 12)
        self.run_json("info", "info", self.path("x.npy"))

    def test_failing_matrices_are_named(self):
        a = self.write_matrices(300)
        a[::2, 0, 0] = np.nan
        with h5py.File(self.path("a.h5"), "w") as file:
            file["A"] = a
        result = self.run_json("factor", "factor", self.path("a.h5"), self.path("q.h5"), "--report",
                               self.path("r.json"), status=1)
        listed = result["first_failures"]
        self.assertEqual([each["matrix"] for each in listed], list(range(0, 200, 2)))
        self.assertEqual({each["status"] for each in listed}, {"non_finite"})
        self.assertEqual(result["check"]["failed"], 150)
        report = self.check(pathlib.Path(self.path("r.json")).read_text(), "report")
        self.assertIsNone(report["matrices"][0]["residual"])
        result = self.run_json("verify", "verify", self.path("a.h5"), self.path("q.h5"), status=1)
        self.assertEqual(len(result["first_failures"]), 100)

    def test_a_run_that_fails_prints_its_error(self):
        for status, args in (
            (2, ("factor", DIGITS)),
            (2, ("factor", DIGITS, self.path("q.h5"), "--mode", "reducd")),
            (3, ("factor", self.path("none.h5"), self.path("q.h5"))),
            (3, ("factor", DIGITS[:-1], self.path("q.h5"))),
            (4, ("factor", DIGITS, self.path("q.h5"), "--device", "99")),
            (5, ("factor", DIGITS, self.path("none/q.h5"))),
            (6, ("factor", DIGITS, self.path("q.h5"), "--memory", "1KiB")),
            (2, ("verify", DIGITS)),
            (3, ("verify", DIGITS, LONGLEY)),
            (2, ("bench", "--shape", "4x")),
            (2, ("devices", "--shape", "4")),
        ):
            result = self.run_json("error", *args, status=status)
            self.assertEqual(result["exit"], status)
            self.assertTrue(result["message"])
            self.assertFalse(pathlib.Path(self.path("q.h5")).exists())
        misspelled = self.run_json("error", "factor", DIGITS, self.path("q.h5"), "--nonsense",
                                   status=2)
        self.assertEqual(misspelled["hint"], "qrtool factor --help lists the options")

    def test_build(self):
        if len(self.run_json("devices", "devices")["places"]) > 1:
            self.run_json("build", "devices", "--build", "--shape", "4x6x3")

    def test_several_inputs(self):
        a = self.write_matrices(3)
        np.save(self.path("b.npy"), a[:, :, 0])
        files = (self.path("a.h5"), self.path("b.npy"), self.path("missing.npy"))
        into = ("--into", self.path("out"))
        for command, given in (("factor", (files[0], files[2])), ("solve", files)):
            result = self.run_json(command + "-into", command, *given, *into, status=3)
            for each, name in zip(result["inputs"], (command, "error")):
                self.check(json.dumps(each["result"]), name)

    def test_several_datasets(self):
        self.write_matrices(4)
        parts = [word for part in ("A[0:2]", "A[2:]", "none") for word in ("--dataset", part)]
        for name, args, status in (("factor", ("factor", self.path("a.h5"), self.path("q.h5"),
                                               *parts), 3),
                                   ("verify", ("verify", self.path("a.h5"), self.path("q.h5")), 0)):
            result = self.run_json(name + "-several", *args, status=status)
            for each in result["datasets"]:
                self.check(json.dumps(each), each["schema"].split(".")[1].split("/")[0])

    def test_info_and_dry_run(self):
        self.write_matrices(5)
        self.run_json("dry-run", "factor", self.path("a.h5"), self.path("q.h5"), "--dry-run")
        table = (str(ROOT / "samples/strd/longley.csv"), self.path("t.mtx"), "--response", "y")
        self.run_json("dry-run", "solve", *table, "--dry-run")
        self.run_json("info", "info", self.path("a.h5"))
        self.run_json("info", DIGITS)
        self.run_json("info", LONGLEY)
        self.run_json("error", "info", self.path("none.h5"), status=3)
        self.run_json("factor", "factor", self.path("a.h5"), self.path("q.npz"))
        self.run_json("info", "info", self.path("q.npz"))

    def test_other_commands(self):
        self.run_json("version", "--version")
        self.run_json("devices", "devices")
        self.run_json("timings", "devices", "--timings")
        self.run_json("forget", "devices", "--forget")
        for kind in ("gauss", "cond", "haar"):
            result = self.run_json("generate", "generate", "--shape", "2x3x3", self.path("g.npy"),
                                   "-f", "--kind", kind)
            self.assertEqual((result["output"]["shape"], result["cond"] is None),
                             ([2, 3, 3], kind != "cond"))
        bench = ("bench", "--shape", "40x8,5x3", "--batch", "2", "--backend", "cpu")
        self.run_json("bench", *bench, "--export-json", self.path("table.json"))
        self.check(pathlib.Path(self.path("table.json")).read_text(), "bench")
        self.run_json("bench", *bench, "--mode", "r", "--against", "none")
        for precision, name in (("single", "complex64"), ("double", "complex128")):
            result = self.run_json("bench", *bench, "--complex", "--precision", precision)
            self.assertEqual(result["precision"], name)
        for mode, *more in (("solve", "--ridge", "0.5"), ("solve-shared", "--shared"),
                            ("solve-weighed", "--shared", "--weights")):
            result = self.run_json("bench", *bench, "--solve", *more)
            self.assertEqual((result["mode"], result["cases"][0]["check_seconds"]), (mode, None))

    def test_a_field_without_description_is_found(self):
        schema = json.loads((SCHEMAS / "error-1.schema.json").read_text())
        document = {"schema": "qrtool.error/1", "version": "", "message": "m", "hint": None,
                    "exit": 3}
        self.assertEqual(undescribed(schema, document), [])
        self.assertTrue(undescribed(schema, document | {"more": 1}))
        self.assertTrue(undescribed(schema, document | {"exit": 1}))
        del document["hint"]
        self.assertTrue(undescribed(schema, document))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=1)
