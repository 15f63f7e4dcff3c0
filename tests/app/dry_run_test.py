#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--dry-run of factor and solve: it says what the run would do and need, and leaves the disk as it
was."""
import json
import os
import shutil
import sys
import unittest

import h5py
import numpy as np

from tool import FolderTest, peak_kib, run



def costs(*args):
    return json.loads(run(*args, "--dry-run", "--json").stdout)


class DryRun(FolderTest):
    def setUp(self):
        super().setUp()
        random = np.random.default_rng(4)
        with h5py.File("a.h5", "w") as file:
            file["A"] = random.standard_normal((300, 40, 8))
            file["b"] = random.standard_normal((300, 40))

    def test_nothing_is_written(self):
        for args in (("factor", "a.h5:/A", "q.h5"),
                     ("factor", "a.h5:/A", "q.csv", "--report", "r.json"),
                     ("factor", "a.h5:/A", "q.npy", "--memory", "512KiB"),
                     ("solve", "a.h5:/A", "a.h5:/b", "x.npz")):
            said = run(*args, "--dry-run")
            self.assertIn("a dry run: nothing was written", said.stdout)
            self.assertIn("enough for", said.stdout)
            self.assertEqual(os.listdir("."), ["a.h5"], args)

    def test_it_tells_the_plan_of_the_run(self):
        explained = run("factor", "a.h5:/A", "q.h5", "--explain", "--threads", "1").stderr
        (cost,) = costs("factor", "a.h5:/A", "q2.h5", "--threads", "1")["runs"]
        for word in ("problem", "variant", "computes", "chunks"):
            line = next(line for line in explained.splitlines() if line.startswith(word))
            self.assertIn(line, cost["plan"])
        np.save("tall.npy", np.random.default_rng(5).standard_normal((100000, 8)))
        self.assertIn("(by rows", run("factor", "tall.npy", "q3.h5", "--dry-run", "--memory",
                                      "8MiB").stdout)

    def test_bytes_are_those_of_the_output(self):
        for ending, slack in (("h5", 1.3), ("npz", 1.1), ("csv", 1.25)):
            for command in (("factor", "a.h5:/A"), ("solve", "a.h5:/A", "a.h5:/b")):
                with self.subTest(ending=ending, command=command[0]):
                    said = costs(*command, f"q.{ending}")
                    run(*command, f"q.{ending}")
                    files = [name for name in os.listdir(".") if name != "a.h5"]
                    written = sum(os.path.getsize(name) for name in files)
                    for name in files:
                        os.remove(name)
                    self.assertLess(said["output_bytes"], written * slack)
                    self.assertGreater(said["output_bytes"], written / slack)
                    inputs = 300 * 40 * (8 if command[0] == "factor" else 9) * 8
                    self.assertEqual(said["runs"][0]["input_bytes"], inputs)

    def test_times_are_there_and_add_up(self):
        for args in (("factor", "a.h5:/A", "q.h5"), ("solve", "a.h5:/A", "a.h5:/b", "x.h5")):
            (cost,) = costs(*args)["runs"]
            seconds = cost["seconds"]
            steps = [seconds[name] for name in ("read", "compute", "write")]
            self.assertTrue(all(step > 0 for step in steps), seconds)
            self.assertGreaterEqual(seconds["total"], max(steps))
            self.assertLessEqual(seconds["total"], seconds["start"] + sum(steps) + 1e-9)

    def test_pivots_and_conditions_take_their_time(self):
        """They cost small matrices more than the factors."""
        def seconds(*options):
            return min(costs("factor", "a.h5:/A", "q.h5", "--backend", "cpu",
                             *options)["runs"][0]["seconds"]["compute"] for _ in range(3))
        self.assertGreater(seconds("--pivot"), 2 * seconds())
        self.assertGreater(seconds("--condition"), 1.3 * seconds())

    def test_memory_is_that_of_the_run(self):
        """Within 1.5 times, of text, of batches, and of complex matrices."""
        random = np.random.default_rng(6)
        np.savetxt("t.csv", random.standard_normal((60000, 10)), "%.5f", ",")
        np.savetxt("y.csv", random.standard_normal((60000, 10)), "%.5f", ",",
                   header=",".join("abcdefghij"), comments="")
        np.save("tall.npy", random.standard_normal((20000, 200)))
        np.save("z.npy", random.standard_normal((400, 50, 50)) * (1 + 1j))
        np.save("wide.npy", random.standard_normal((4, 300000)))
        with h5py.File("b.h5", "w") as file:
            file["A"] = random.standard_normal((3000, 40, 20))
        program = 15
        for args in (("factor", "t.csv", "q.h5"), ("factor", "tall.npy", "q.npy", "--mode", "r"),
                     ("factor", "b.h5", "q.h5"), ("factor", "z.npy", "q.npy"),
                     ("factor", "wide.npy", "q.npy", "--mode", "r"),
                     ("solve", "y.csv", "x.csv", "--response", "j")):
            args += ("-f", "--backend", "cpu")
            (cost,) = costs(*args)["runs"]
            said, true = program + cost["memory_bytes"] / 2**20, peak_kib(*args) / 2**10
            self.assertLess(said, 1.5 * true, args)
            self.assertLess(true, 1.5 * said, args)

    def test_a_disk_that_is_too_small_is_said_and_is_no_failure(self):
        count = shutil.disk_usage(".").free // (8 * 10**6) + 1
        # A hole: it takes no space.
        np.lib.format.open_memmap("huge.npy", "w+", "f8", (count, 1000, 1000))
        room = costs("factor", "huge.npy", "q.h5")
        self.assertFalse(room["suffices"])
        self.assertLess(room["free_bytes"], room["output_bytes"])
        self.assertGreater(room["output_bytes"], count * 2 * 8 * 10**6)
        self.assertRegex(run("factor", "huge.npy", "q.h5", "--dry-run").stdout,
                         "free +only .* are needed")

    def test_several_datasets_are_added_up(self):
        parts = ("--dataset", "A[0:100]", "--dataset", "A[100:]")
        room = costs("factor", "a.h5", "q.h5", *parts)
        self.assertEqual([each["input"] for each in room["runs"]],
                         ["a.h5:/A[0:100]", "a.h5:/A[100:]"])
        self.assertEqual(room["output_bytes"], sum(each["output_bytes"] for each in room["runs"]))

    def test_what_would_stop_the_run_stops_the_dry_run(self):
        run("factor", "none.h5", "q.h5", "--dry-run", status=3)
        run("factor", "a.h5", "a.h5:/q", "--dry-run", status=2)
        run("factor", "a.h5:/A", "q.h5", "--dry-run", "--memory", "1KiB", status=6)
        run("factor", "a.h5:/A", "q.h5", "--dry-run", "--device", "99", status=4)
        run("factor", "a.h5:/A", "q.h5")
        self.assertIn("exists", run("factor", "a.h5:/A", "q.h5", "--dry-run", status=5).stderr)
        run("factor", "a.h5:/A", "q.h5", "--dry-run", "--force")

    def test_a_place_that_cannot_be_written_stops_the_dry_run(self):
        os.makedirs("folder.h5")
        for out, why in (("none/q.h5", "its directory does not exist"),
                         ("none/q.csv", "its directory does not exist"),
                         ("folder.h5", "it is a directory")):
            for command in (("factor", "a.h5:/A"), ("solve", "a.h5:/A", "a.h5:/b")):
                tried = run(*command, out, status=5).stderr
                self.assertIn(why, tried)
                self.assertIn(why, run(*command, out, "--dry-run", status=5).stderr)
        run("factor", "a.h5:/A", "q.h5", "--report", "none/r.csv", "--dry-run", status=5)
        run("factor", "a.h5:/A", "-", "--mode", "r", "--dry-run")
        self.assertEqual(sorted(os.listdir(".")), ["a.h5", "folder.h5"])

    def test_empty_and_short_inputs(self):
        np.save("none.npy", np.zeros((0, 5, 3)))
        np.save("flat.npy", np.zeros((4, 0, 3)))
        for name in ("none.npy", "flat.npy"):
            self.assertEqual(costs("factor", name, "q.npz")["runs"][0]["input_bytes"], 0)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=1)
