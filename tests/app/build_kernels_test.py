#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`devices --build` builds the kernels that a later run needs, and `--dry-run` says how many are
missing. Driver and tool keep what they built in folders of this test."""
import json
import os
import tempfile
import unittest

import h5py
import numpy as np

from tool import FolderTest, has_device, run


class BuildKernels(FolderTest):
    """All tests share the driver's cache and one shape, since PoCL takes long to build."""

    @classmethod
    def setUpClass(cls):
        cache = tempfile.TemporaryDirectory(prefix="qrtool-cache-")
        cls.addClassCleanup(cache.cleanup)
        cls.cache = cache.name

    def setUp(self):
        super().setUp()
        if not has_device():
            self.skipTest("there is no OpenCL device")
        kept = {"POCL_CACHE_DIR": self.cache, "CUDA_CACHE_PATH": self.cache,
                "QRTOOL_TIMINGS": os.path.abspath("t.json")}
        for name, value in kept.items():
            before = os.environ.get(name)
            os.environ[name] = value
            self.addCleanup(os.environ.pop if before is None else os.environ.__setitem__, name,
                            *(() if before is None else (before,)))
        self.rng = np.random.default_rng(2)

    def programs(self):
        """Those that were ever built."""
        if not os.path.exists("t.json"):
            return set()
        with open("t.json", encoding="ascii") as file:
            return {program["id"] for device in json.load(file)["devices"]
                    for program in device["programs"]}

    def unseen(self, *args):
        said = run(*args, "--backend", "opencl", "--dry-run", "--json").stdout
        programs = json.loads(said)["runs"][0]["programs"]
        return programs["unseen"], programs["all"]

    def test_a_run_finds_the_kernels_of_its_file(self):
        np.save("a.npy", self.rng.standard_normal((20, 24, 8)))
        np.save("b.npy", self.rng.standard_normal((20, 24)))
        runs = (("factor", "a.npy", "q.h5"), ("factor", "a.npy", "r.h5", "--mode", "r"),
                ("solve", "a.npy", "b.npy", "x.h5"))
        built = json.loads(run("devices", "--build", "a.npy", "--json").stdout)
        self.assertEqual((built["schema"], built["shapes"], built["refused"]),
                         ("qrtool.build/1", 1, 0))
        self.assertEqual(built["programs"], built["unseen"])
        ahead = self.programs()
        self.assertEqual(len(ahead), built["programs"])
        for args in runs:
            unseen, count = self.unseen(*args)
            self.assertEqual(unseen, 0, args)
            self.assertGreater(count, 1)
            run(*args, "--backend", "opencl")
            self.assertEqual(self.programs(), ahead, args)
        said = run("factor", "a.npy", "p.h5", "--backend", "opencl", "--dry-run").stdout
        self.assertIn("kernels   all were built before\n", said)
        again = run("devices", "--build", "a.npy").stdout
        self.assertRegex(again, r": \d+ programs for 1 shape in .*, 0 of them never built before\n")

    def test_a_run_of_wide_systems_finds_them_too(self):
        np.save("a.npy", self.rng.standard_normal((20, 8, 24)))
        np.save("b.npy", self.rng.standard_normal((20, 8)))
        run("devices", "--build", "a.npy")
        ahead = self.programs()
        self.assertEqual(self.unseen("solve", "a.npy", "b.npy", "x.h5")[0], 0)
        run("solve", "a.npy", "b.npy", "x.h5", "--backend", "opencl")
        self.assertEqual(self.programs(), ahead)

    def test_a_dry_run_counts_what_is_missing(self):
        np.save("a.npy", self.rng.standard_normal((20, 24, 8)))
        unseen, count = self.unseen("factor", "a.npy", "q.h5")
        self.assertEqual(unseen, count)
        os.remove("t.json")  # the dry run has built kernels of a sample
        said = run("factor", "a.npy", "q.h5", "--backend", "opencl", "--dry-run").stdout
        self.assertRegex(said, rf"kernels   {count} of {count} programs were not built before: ")
        said = run("factor", "a.npy", "q.h5", "--backend", "cpu", "--dry-run").stdout
        self.assertNotIn("kernels ", said)
        run("devices", "--build", "--shape", "20x24x8", "--precision", "double")
        self.assertEqual(self.unseen("factor", "a.npy", "q.h5"), (0, count))

    def test_every_dataset_of_a_file(self):
        with h5py.File("a.h5", "w") as file:
            file["A"] = self.rng.standard_normal((20, 24, 8))
            file["g/B"] = self.rng.standard_normal((4, 5, 24, 8))
            file["line"] = np.arange(3.0)
        said = json.loads(run("devices", "--build", "a.h5", "--json").stdout)
        self.assertEqual(said["shapes"], 2)
        one = run("devices", "--build", "a.h5:/A", "--progress", "always")
        self.assertIn("for 1 shape in ", one.stdout)
        self.assertIn("build  1/1  100%", one.stderr)
        for name in ("A", "g/B"):
            self.assertEqual(self.unseen("factor", "a.h5:/" + name, "q.h5")[0], 0)

    def test_mistakes(self):
        run("devices", "--build", "missing.npy", status=3)
        run("devices", "--build", "--device", "no-such-device", status=4)
        with h5py.File("none.h5", "w") as file:
            file["line"] = np.arange(3.0)
        self.assertIn("holds no matrices", run("devices", "--build", "none.h5", status=3).stderr)


if __name__ == "__main__":
    unittest.main(argv=["build_kernels_test"], verbosity=1)
