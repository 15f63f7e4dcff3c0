#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Several inputs in one run (--into): outputs named as inputs, each committed on its own, and a run
that goes on after a failure."""
import glob
import gzip
import json
import os
import signal
import subprocess
import time
import unittest

import h5py
import numpy as np

from tool import QRTOOL, FolderTest, limited, run

TEMPORARY = ".*.qrtool-*.tmp"


class Into(FolderTest):
    def setUp(self):
        super().setUp()
        self.rng = np.random.default_rng(7)

    def save(self, name, *shape):
        array = self.rng.standard_normal(shape or (3, 6, 4))
        np.save(name, array)
        return array

    def factors(self, name):
        q, r = np.load(f"out/{name}.Q.npy"), np.load(f"out/{name}.R.npy")
        return q @ r

    def expect_no_rest(self):
        self.assertEqual(glob.glob("out/" + TEMPORARY), [])


class Factor(Into):
    def test_outputs_are_named_as_inputs(self):
        a = self.save("a.npy")
        os.mkdir("deep")
        with h5py.File("deep/c.h5", "w") as file:
            file["g/A"] = a
            file["B"] = a[:, :, :2]
        with h5py.File("m.mat", "w") as file:
            file["A"] = a
        with gzip.open("t.csv.gz", "wt") as file:
            np.savetxt(file, a[0], delimiter=",")
        with h5py.File("run.12", "w") as file:
            file["A"] = a[1]
        inputs = ["a.npy", "deep/c.h5:/g/A[1:]", "m.mat", "t.csv.gz", "run.12"]
        said = run("factor", *inputs, "--into", "out").stdout
        self.assertEqual(sorted(os.listdir("out")),
                         ["a.Q.npy", "a.R.npy", "a.report.json", "c.h5", "m.h5", "run.12.h5",
                          "t.Q.csv", "t.R.csv", "t.report.csv"])
        lines = said.splitlines()
        self.assertRegex(lines[0], r"^a\.npy +all 3 pass; wrote out/a\.Q\.npy, out/a\.R\.npy, ")
        self.assertRegex(lines[1], r"^deep/c\.h5:/g/A\[1:\] +all 2 pass; wrote out/c\.h5$")
        self.assertEqual(lines[-1], "5 of 5 outputs written to out")
        self.assertEqual(len(lines), 6)
        np.testing.assert_allclose(self.factors("a"), a, atol=1e-13)
        for given, output in (("a.npy", "a.npy"), ("deep/c.h5:/g/A[1:]", "c.h5"),
                              ("m.mat", "m.h5"), ("t.csv.gz", "t.csv"), ("run.12", "run.12.h5")):
            run("verify", given, "out/" + output)
        self.expect_no_rest()

    def test_bytes_are_those_of_runs_of_their_own(self):
        self.save("a.npy")
        self.save("b.npy", 5, 9, 9)
        run("factor", "a.npy", "b.npy", "--into", "out", "--mode", "complete")
        for name in ("a", "b"):
            run("factor", name + ".npy", "own.npy", "--mode", "complete", "-f")
            for part in ("Q", "R"):
                with open(f"out/{name}.{part}.npy", "rb") as one, \
                        open(f"own.{part}.npy", "rb") as other:
                    self.assertTrue(one.read() == other.read())

    def test_the_run_goes_on_after_failures(self):
        self.save("a.npy")
        self.save("z.npy")
        np.save("nan.npy", np.full((2, 3, 3), np.nan))
        inputs = ["a.npy", "missing.npy", "nan.npy", "z.npy"]
        done = run("factor", *inputs, "--into", "out", status=3)
        self.assertEqual(done.stderr.count("missing.npy"), 1)
        self.assertIn("nan.npy: 2 of 2 matrices contain NaN or Inf", done.stderr)
        lines = done.stdout.splitlines()
        self.assertRegex(lines[1], "^missing.npy +failed with exit status 3; nothing written$")
        self.assertRegex(lines[2], "^nan.npy +0 of 2 pass, 2 not finite; wrote out/nan.Q.npy")
        self.assertEqual(lines[-1], "3 of 4 outputs written to out")
        run("verify", "z.npy", "out/z.npy")
        result = json.loads(run("factor", *inputs, "--into", "out", "-f", "--json",
                                status=3).stdout)
        self.assertEqual((result["schema"], result["folder"], result["exit"]),
                         ("qrtool.factor-into/1", "out", 3))
        self.assertEqual([each["name"] for each in result["inputs"]], inputs)
        self.assertEqual([each["result"]["exit"] for each in result["inputs"]], [0, 3, 1, 0])
        self.assertEqual(run("factor", "a.npy", "z.npy", "--into", "out", "-f", "-q").stdout, "")
        self.expect_no_rest()

    def test_an_output_that_exists_is_kept(self):
        self.save("a.npy")
        self.save("b.npy")
        run("factor", "a.npy", "--into", "out")
        with open("out/a.Q.npy", "rb") as file:
            before = file.read()
        done = run("factor", "a.npy", "b.npy", "--into", "out", status=5)
        self.assertIn("'out/a.Q.npy' exists", done.stderr)
        with open("out/a.Q.npy", "rb") as file:
            self.assertEqual(file.read(), before)
        run("verify", "b.npy", "out/b.npy")
        run("factor", "a.npy", "b.npy", "--into", "out", "-f")

    def test_names_are_checked_before_any_work(self):
        self.save("a.npy")
        os.mkdir("other")
        self.save("other/a.npy")
        with h5py.File("two.h5", "w") as file:
            file["A"] = file["B"] = np.eye(3)
        for inputs, text in ((["a.npy", "other/a.npy"], "'out/a.npy' would be the output of"),
                             (["a.npy", "a.npy"], "of 'a.npy' and of 'a.npy'"),
                             (["two.h5:/A", "two.h5:/B"], "'out/two.h5' would be")):
            self.assertIn(text, run("factor", *inputs, "--into", "out", status=2).stderr)
            self.assertFalse(os.path.exists("out"))
        os.mkdir("out")
        os.link("a.npy", "out/x.Q.npy")
        self.save("x.npy")
        said = run("factor", "x.npy", "a.npy", "--into", "out", "-f", status=2).stderr
        self.assertIn("'out/x.Q.npy' would be the output of 'x.npy', and is the input 'a.npy'",
                      said)
        self.assertEqual(os.listdir("out"), ["x.Q.npy"])
        self.assertIn("IN is missing", run("factor", "--into", "out", status=2).stderr)

    def test_a_folder_that_cannot_be_made(self):
        self.save("a.npy")
        for folder in ("a.npy", "a.npy/out"):
            done = run("factor", "a.npy", "--into", folder, status=5)
            self.assertIn(f"--into '{folder}': files cannot be written there", done.stderr)
            self.assertEqual(done.stdout, "")

    def test_a_full_disk_loses_one_output(self):
        for name in ("a.npy", "z.npy"):
            self.save(name)
        for name in ("b.h5", "y.h5"):
            with h5py.File(name, "w") as file:
                file["A"] = self.rng.standard_normal((3, 6, 4))
        self.save("large.npy", 200, 64, 64)
        with h5py.File("huge.h5", "w") as file:
            file["A"] = self.rng.standard_normal((200, 64, 64))
        inputs = ["a.npy", "b.h5", "large.npy", "huge.h5", "y.h5", "z.npy"]
        done = run("factor", *inputs, "--into", "out", status=5, preexec_fn=limited(1 << 20))
        self.assertEqual(done.stdout.splitlines()[-1], "4 of 6 outputs written to out")
        self.assertEqual(sorted(name for name in os.listdir("out") if ".R." not in name),
                         ["a.Q.npy", "a.report.json", "b.h5", "y.h5", "z.Q.npy", "z.report.json"])
        for given in ("a.npy", "b.h5", "y.h5", "z.npy"):
            run("verify", given, "out/" + given)
        self.expect_no_rest()

    def test_an_interrupt_leaves_what_is_committed(self):
        count = 3000
        os.mkdir("in")
        for i in range(count):
            np.save(f"in/{i:04}.npy", np.eye(3))
        inputs = sorted(glob.glob("in/*"))
        with subprocess.Popen([QRTOOL, "factor", *inputs, "--into", "out", "--backend", "cpu"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as tool:
            end = time.monotonic() + 60
            while len(glob.glob("out/*.report.json")) < 5 and time.monotonic() < end:
                time.sleep(0.01)
            tool.send_signal(signal.SIGINT)
            _, errors = tool.communicate(timeout=60)
        self.assertEqual(tool.returncode, -signal.SIGINT)
        complete = [name for name in inputs
                    if all(os.path.exists(f"out/{os.path.basename(name)[:-4]}.{part}")
                           for part in ("Q.npy", "R.npy", "report.json"))]
        self.assertRegex(errors, r"interrupted(?: while an output was being finished)?; \d+ of "
                         f"{count} outputs are complete\n$")
        said = int(errors.split("; ")[1].split(" of")[0])
        # One that is being finished may be there already.
        self.assertIn(len(complete) - said, (0, 1) if "while" in errors else (0,))
        self.assertGreaterEqual(said, 4)
        self.assertLess(said, count)
        run("verify", complete[-1], "out/" + os.path.basename(complete[-1]))
        self.expect_no_rest()

    def test_a_second_run_does_the_rest(self):
        for name in ("a.npy", "b.npy", "c.npy"):
            self.save(name)
        with h5py.File("d.h5", "w") as file:
            file["A"] = np.full((4, 2), np.nan)
        inputs = ["a.npy", "b.npy", "c.npy", "d.h5"]
        run("factor", "a.npy", "b.npy", "d.h5", "--into", "out", status=1)
        before = os.stat("out/a.Q.npy").st_mtime_ns
        done = run("factor", *inputs, "--into", "out", "--skip-existing", status=1)
        self.assertEqual(done.stdout.splitlines()[-1],
                         "2 of 2 outputs written to out; 2 skipped, which are there")
        self.assertEqual(os.stat("out/a.Q.npy").st_mtime_ns, before)
        # An output that does not pass does not stand in the way of a better input.
        with h5py.File("d.h5", "w") as file:
            file["A"] = np.eye(4)[:, :2]
        run("factor", *inputs, "--into", "out", "--skip-existing")
        run("verify", "d.h5", "out/d.h5")
        done = run("factor", *inputs, "--into", "out", "--skip-existing", "--json")
        result = json.loads(done.stdout)
        self.assertEqual((result["skipped"], result["inputs"], result["exit"]), (4, [], 0))
        with open("out/e.h5", "wb") as file:
            file.write(b"a file of somebody else")
        os.rename("d.h5", "e.h5")
        self.assertIn("'out/e.h5' exists", run("factor", "e.h5", "--into", "out",
                                               "--skip-existing", status=5).stderr)

    def test_jobs_share_the_inputs(self):
        names = [f"{i}.npy" for i in range(7)]
        for name in names:
            self.save(name, 4, 2)
        written = []
        for job in range(1, 4):
            done = run("factor", *names, "--into", "out", "--shard", f"{job}/3", "--json")
            written.append([each["name"] for each in json.loads(done.stdout)["inputs"]])
        self.assertEqual(written, [names[0::3], names[1::3], names[2::3]])
        done = run("factor", "0.npy", "--into", "new", "--shard", "3/3")
        self.assertEqual(done.stdout, "0 of 0 outputs written to new\n")
        for value in ("0/3", "4/3", "2", "a/b", "1/0", "-1/2"):
            said = run("factor", "0.npy", "--into", "new", f"--shard={value}", status=2).stderr
            self.assertIn("is not I/N", said)
        for option in (["--shard", "1/2"], ["--skip-existing"]):
            said = run("factor", "0.npy", "o.npy", *option, status=2).stderr
            self.assertIn("is for several inputs, with --into", said)
        said = run("factor", "0.npy", "--into", "out", "--skip-existing", "-f", status=2).stderr
        self.assertIn("contradict each other", said)

    def test_a_dry_run_writes_nothing(self):
        for name in ("a.npy", "b.npy"):
            self.save(name)
        result = json.loads(run("factor", "a.npy", "b.npy", "--into", "out", "--dry-run",
                                "--json").stdout)
        self.assertEqual((result["schema"], result["output"], len(result["runs"])),
                         ("qrtool.dry-run/1", "out", 2))
        self.assertFalse(os.path.exists("out"))
        run("factor", "a.npy", "--into", "out")
        self.assertIn("exists", run("factor", "a.npy", "b.npy", "--into", "out", "--dry-run",
                                    status=5).stderr)
        result = json.loads(run("factor", "a.npy", "b.npy", "--into", "out", "--dry-run", "--json",
                                "--skip-existing").stdout)
        self.assertEqual(len(result["runs"]), 1)

    def test_words_may_stand_anywhere(self):
        for name in ("a.npy", "-b.npy"):
            self.save("./" + name)
        run("factor", "--into", "out", "a.npy", "--", "-b.npy")
        self.assertTrue(os.path.exists("out/-b.Q.npy"))
        said = run("factor", "a.npy", "x.npy", "y.npy", status=2).stderr
        self.assertIn("unexpected argument 'y.npy'", said)


class Solve(Into):
    def test_one_a_and_several_b(self):
        a = self.save("a.npy", 9, 4)
        sides = {name: self.save(name + ".npy", 9) for name in ("b1", "b2", "b3")}
        names = [name + ".npy" for name in sides]
        said = run("solve", "a.npy", *names, "--into", "out").stdout
        self.assertRegex(said, r"^b1\.npy +the solution passes; wrote out/b1\.X\.npy")
        self.assertEqual(said.splitlines()[-1], "3 of 3 outputs written to out")
        for name, b in sides.items():
            np.testing.assert_allclose(np.load(f"out/{name}.X.npy"),
                                       np.linalg.lstsq(a, b, rcond=None)[0], rtol=1e-9)
            run("verify", "a.npy", name + ".npy", f"out/{name}.npy")
        np.save("b2.npy", np.zeros(5))
        done = run("solve", "a.npy", *names, "--into", "out", "-f", "--json", status=3)
        result = json.loads(done.stdout)
        self.assertEqual((result["schema"], result["exit"]), ("qrtool.solve-into/1", 3))
        self.assertEqual([each["result"]["schema"] for each in result["inputs"]],
                         ["qrtool.solve/1", "qrtool.error/1", "qrtool.solve/1"])
        self.expect_no_rest()

    def test_a_second_run_and_a_dry_run(self):
        self.save("a.npy", 9, 4)
        for name in ("b1.npy", "b2.npy"):
            self.save(name, 9)
        names = ["b1.npy", "b2.npy"]
        result = json.loads(run("solve", "a.npy", *names, "--into", "out", "--dry-run",
                                "--json").stdout)
        self.assertEqual(len(result["runs"]), 2)
        run("solve", "a.npy", *names, "--into", "out", "--shard", "2/2")
        done = run("solve", "a.npy", *names, "--into", "out", "--skip-existing")
        self.assertEqual(done.stdout.splitlines()[-1],
                         "1 of 1 outputs written to out; 1 skipped, which are there")

    def test_several_tables(self):
        for name in ("s.csv", "t.csv"):
            table = self.rng.standard_normal((8, 3))
            np.savetxt(name, table, delimiter=",", header="a,b,y", comments="")
        run("solve", "s.csv", "t.csv", "--response", "y", "--into", "out")
        for name in ("s", "t"):
            run("solve", name + ".csv", "own.csv", "--response", "y", "-f")
            with open(f"out/{name}.X.csv" if os.path.exists(f"out/{name}.X.csv")
                      else f"out/{name}.csv", encoding="ascii") as one, \
                    open("own.X.csv" if os.path.exists("own.X.csv") else "own.csv",
                         encoding="ascii") as other:
                self.assertEqual(one.read(), other.read())

    def test_what_is_read_is_no_output(self):
        self.save("a.npy", 9, 4)
        self.save("b.npy", 9)
        np.save("w.npy", np.ones(9))
        os.mkdir("out")
        os.link("w.npy", "out/b.X.npy")
        said = run("solve", "a.npy", "b.npy", "--into", "out", "--weights", "w.npy", "-f",
                   status=2).stderr
        self.assertIn("'out/b.X.npy' would be the output of 'b.npy', and is the input 'w.npy'",
                      said)
        self.assertIn("B is missing", run("solve", "a.npy", "--into", "out", status=2).stderr)


if __name__ == "__main__":
    unittest.main(argv=["into_test"], verbosity=1)
