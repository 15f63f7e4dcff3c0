# SPDX-License-Identifier: Apache-2.0
"""How bench measures: several batches and kinds, cold caches, portable kernels, the first run, the
state of the machine, and an earlier run beside it. Nothing asserts on a time."""
import json
import os
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from tool import FolderTest, has_device, run, said  # noqa: E402

TINY = ("bench", "--quick", "--shape", "16x8", "--batch", "20", "--against", "none")


def bench(*more, **options):
    return json.loads(run(*TINY, "--json", *more, **options).stdout)


class MeasurementTest(FolderTest):
    def test_every_seed_is_a_batch_of_its_own(self):
        whole = bench("--backend", "cpu", "--seeds", "3", "--seed", "5")
        seconds = whole["cases"][0]["seconds"]
        self.assertEqual([batch["seed"] for batch in seconds["batches"]], [5, 6, 7])
        self.assertEqual(len(seconds["all"]), sum(batch["runs"] for batch in seconds["batches"]))
        medians = [batch["median"] for batch in seconds["batches"]]
        self.assertEqual(seconds["median"], sorted(medians)[1])
        self.assertEqual(seconds["worst"], max(medians))
        for batch in seconds["batches"]:
            self.assertIn(batch["verified_run"], range(1, batch["runs"] + 1))
        self.assertEqual(whole["cases"][0]["routes"]["only"]
                         + whole["cases"][0]["routes"]["first_pass"], 60, whole["cases"][0])
        shown = run(*TINY, "--backend", "cpu", "--seeds", "3", "--seed", "5").stdout
        self.assertIn("seeds 5 to 7", shown)
        self.assertIn("worst ms", shown)

    def test_kinds_have_cases_of_their_own_and_mixtures_are_one(self):
        cases = bench("--backend", "cpu", "--kind", "gauss,contest,band+upper")["cases"]
        self.assertEqual([case["kind"] for case in cases], ["gauss", "contest", "band+upper"])
        self.assertEqual([case["failed"] for case in cases], [0, 0, 0])
        self.assertEqual(len({case["error_worst"] for case in cases}), 3)

    def test_caches_are_emptied_on_the_cpu_and_on_a_device(self):
        for backend in ("cpu", "opencl") if has_device() else ("cpu",):
            whole = bench("--backend", backend, "--cold", "--limit-seconds", "0.1")
            self.assertTrue(whole["cold"])
            self.assertGreater(whole["cases"][0]["seconds"]["median"], 0)

    @unittest.skipUnless(has_device(), "no OpenCL device")
    def test_a_first_run_that_builds_kernels_is_no_time_of_a_device(self):
        own = {**os.environ, "POCL_CACHE_DIR": os.path.abspath("empty")}
        begin = time.monotonic()
        whole = bench("--backend", "opencl", "--limit-seconds", "0.001", env=own)
        self.assertLess(whole["cases"][0]["seconds"]["median"], (time.monotonic() - begin) / 20,
                        "the kernels of so small a batch take far longer to build than to run")
        self.assertFalse([note for note in whole["notes"] if "not warmed up" in note])

    @unittest.skipUnless(has_device(), "no OpenCL device")
    def test_a_device_without_float64_is_timed_and_measures_its_errors(self):
        environment = dict(os.environ, QRTOOL_PRETEND="no-float64")
        for mode in ("reduced", "raw", "r"):
            case = bench("--backend", "opencl", "--mode", mode, env=environment)["cases"][0]
            self.assertGreater(case["seconds"]["median"], 0, case)
            self.assertGreater(case["check_seconds"], 0)
            self.assertEqual(case["failed"], 0)
            if mode != "r":
                self.assertGreater(case["error_worst"], 0)

    @unittest.skipUnless(has_device(), "no OpenCL device")
    def test_portable_kernels_run_and_are_right(self):
        for precision in ("single", "double"):
            whole = bench("--backend", "opencl", "--portable", "--precision", precision)
            self.assertTrue(whole["portable"])
            self.assertEqual(whole["cases"][0]["failed"], 0)
            self.assertGreater(whole["cases"][0]["error_worst"], 0)
        self.assertIn("portable kernels", run(*TINY, "--backend", "opencl", "--portable").stdout)

    @unittest.skipUnless(has_device(), "no OpenCL device")
    def test_a_first_run_finds_no_kernels(self):
        os.mkdir("kept")
        os.mkdir("tmp")
        own = {**os.environ, "POCL_CACHE_DIR": os.path.abspath("kept"),
               "TMPDIR": os.path.abspath("tmp")}
        whole = bench("--backend", "opencl", "--first-run", env=own)
        case = whole["cases"][0]
        self.assertGreater(case["first_seconds"], 2 * case["seconds"]["median"],
                           "a kernel takes longer to build than to run on such a small batch")
        self.assertEqual(os.listdir("kept"), [], "the user's kernels are neither used nor written")
        self.assertEqual(os.listdir("tmp"), [], "and the empty folder is gone")

    def test_the_state_of_the_machine_is_kept(self):
        os.mkdir("bin")
        with open("bin/nvidia-smi", "w", encoding="utf-8") as script:
            script.write("#!/bin/sh\ncase \"$*\" in\n"
                         "*compute-apps*) echo 4711 ;;\n"
                         "*) echo 'Pretend GPU, 1980, 3201, 99.50, 31, P0, 0' ;;\nesac\n")
        os.chmod("bin/nvidia-smi", 0o755)
        path = os.path.abspath("bin") + ":" + os.environ["PATH"]
        if has_device():
            whole = bench("--backend", "opencl", env={**os.environ, "PATH": path})
            for state in whole["state"].values():
                self.assertEqual(state["gpus"][0]["clock_mhz"], "1980")
                self.assertEqual(state["gpus"][0]["power_state"], "P0")
            self.assertIn("another process computes on a GPU: 4711", whole["notes"])
        whole = bench("--backend", "cpu", env={**os.environ, "PATH": path})
        self.assertEqual(whole["state"]["before"]["gpus"], [], "a GPU is not asked")
        self.assertGreaterEqual(whole["state"]["after"]["load"], 0)

    def test_an_earlier_run_is_compared(self):
        earlier = bench("--backend", "cpu", "--export-json", "old.json")
        cell = earlier["cases"][0]["seconds"]
        same = (*TINY, "--backend", "cpu", "--compare", "old.json")

        def changed(median, **more):
            cell["median"] = median
            with open("old.json", "w", encoding="utf-8") as file:
                json.dump({**earlier, **more}, file)

        changed(1e3)
        run(*same)
        changed(1e-12)
        done = run(*same, status=1)
        self.assertIn("20 of 16x8, gauss, ", done.stderr)
        self.assertIn("bench: 1 of 1 cases are slower", done.stderr)
        run(*same, "--tolerance", "1e15")
        changed(1e3, precision="double")
        self.assertIn("old.json has precision", said(*same, status=2))
        changed(1e3, ridge=0.5)
        self.assertIn("old.json has ridge 0.5, and this run has 0.0", said(*same, status=2))
        del earlier["ridge"]  # as earlier versions wrote it
        changed(1e3)
        run(*same)
        changed(1e3, cases=[])
        self.assertIn("old.json: has no time of 20 of 16x8, gauss", said(*same, status=3))
        changed(1e3)
        self.assertIn("has no time of 20 of 16x8, band",
                      said(*same, "--kind", "gauss,band", status=3))
        self.assertIn("is not what bench --export-json writes",
                      said(*TINY, "--compare", __file__, status=3))
        self.assertIn("cannot be read", said(*TINY, "--compare", "nowhere", status=3))

    def test_complex_cases_are_compared_with_complex_ones_alone(self):
        complex_run = (*TINY, "--backend", "cpu", "--complex")
        run(*complex_run, "--export-json", "old.json")
        run(*complex_run, "--compare", "old.json", "--tolerance", "1e9")
        self.assertIn('has precision "complex64", and this run has "single"',
                      said(*TINY, "--backend", "cpu", "--compare", "old.json", status=2))
        self.assertIn('has precision "complex64", and this run has "complex128"',
                      said(*complex_run, "--precision", "double", "--compare", "old.json",
                           status=2))

    def test_a_case_that_has_no_time_now_is_an_error(self):
        large = ("bench", "--quick", "--shape", "600x600", "--against", "none", "--backend", "cpu")
        run(*large, "--export-json", "old.json")
        self.assertIn("--compare: this run has no time of 1 of 600x600",
                      said(*large, "--compare", "old.json", "--memory", "1MiB", status=6))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=1)
