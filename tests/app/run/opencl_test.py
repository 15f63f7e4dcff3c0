#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the OpenCL backend as a user does, and with faults: no platform, failed builds, no memory left, a lost
device. Every failing call must end with the exit code of its class and no output, or with a correct output."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

QRTOOL, ROOT, LAYER = sys.argv[1:4]
OUT_OF_MEMORY = (-4, -61)  # CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_INVALID_BUFFER_SIZE
LOST = (-5, -36)  # CL_OUT_OF_RESOURCES, CL_INVALID_COMMAND_QUEUE


class Opencl(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="qrtool-opencl-")
        self.a = os.path.join(self.folder, "a.h5")
        self.q = os.path.join(self.folder, "q.h5")
        self.run_tool("generate", "--shape", "50x20x12", self.a, "-q")

    def tearDown(self):
        shutil.rmtree(self.folder)

    def run_tool(self, *args, env=None, expect=(0,)):
        done = subprocess.run([QRTOOL, *args], capture_output=True, text=True, timeout=120, check=False,
                              env=dict(os.environ, **(env or {})))
        self.assertIn(done.returncode, expect, (args, env, done.stdout, done.stderr))
        return done

    def factor_failing(self, call, nth, code, expect, *options):
        """Lets one call fail. The output must be correct or missing."""
        env = {"OPENCL_LAYERS": LAYER, "QRTOOL_FAIL_CL": f"{call}:{nth}:{code}"}
        done = self.run_tool("factor", self.a, self.q, "--backend", "opencl", *options, env=env, expect=expect)
        left = set(os.listdir(self.folder)) - {"a.h5"}
        if done.returncode == 0:
            self.run_tool("verify", self.a, self.q)
            os.remove(self.q)
        else:
            self.assertEqual(left, set(), (call, nth, code))
            self.assertTrue(done.stderr.startswith("qrtool: "), done.stderr)
        return done

    def test_every_variant_verifies_and_is_the_one_that_ran(self):
        import h5py

        for variant, shape in (("opencl/small", "9x12x12"), ("opencl/blocked", "3x40x40"),
                               ("opencl/large", "9x12x12"), ("opencl/textbook", "9x12x12")):
            self.run_tool("generate", "--shape", shape, self.a, "-q", "--force")
            self.run_tool("factor", self.a, self.q, "--variant", variant, "--force")
            self.run_tool("verify", self.a, self.q)
            with h5py.File(self.q) as file:
                self.assertEqual(file.attrs["variant"], variant)
                self.assertEqual(file.attrs["backend"], "opencl")

    def test_arithmetic_by_choice(self):
        import h5py

        self.run_tool("generate", "--shape", "2x40x36", self.a, "-q", "--force")
        worst = {}
        for choice, arithmetic in (("--precision=mixed", "float32, products of stored float16"),
                                   ("--arithmetic=strict", "float32")):
            self.run_tool("factor", self.a, self.q, "--variant", "opencl/large", "--force", choice)
            self.run_tool("verify", self.a, self.q)
            with h5py.File(self.q) as file:
                self.assertEqual(file.attrs["arithmetic"], arithmetic)
                self.assertEqual(file.attrs["eps"], 2.0**-10 if "mixed" in choice else 2.0**-23)
                worst[choice] = file["report/residual"][:].max()
        self.assertGreater(worst["--precision=mixed"], 10 * worst["--arithmetic=strict"])

    def test_agrees_with_the_cpu(self):
        import h5py
        import numpy as np

        other = os.path.join(self.folder, "cpu.h5")
        for mode in ("reduced", "complete", "r", "raw"):
            self.run_tool("factor", self.a, self.q, "--backend", "opencl", "--mode", mode, "--force")
            self.run_tool("factor", self.a, other, "--backend", "cpu", "--mode", mode, "--force")
            with h5py.File(self.q) as ours, h5py.File(other) as cpu:
                for name in set(ours) - {"report"}:
                    if (mode, name) == ("complete", "Q"):
                        continue  # its last columns are not unique
                    np.testing.assert_allclose(ours[name][:], cpu[name][:], atol=2e-5)

    def test_no_platform(self):
        nowhere = {"OCL_ICD_VENDORS": "/nonexistent"}
        done = self.run_tool("factor", self.a, self.q, "--backend", "opencl", env=nowhere, expect=(4,))
        self.assertIn("hint: ", done.stderr)
        self.assertFalse(os.path.exists(self.q))
        self.run_tool("factor", self.a, self.q, env=nowhere)
        self.assertIn("no OpenCL device", self.run_tool("devices", env=nowhere).stdout)

    def test_unknown_device_lists_what_there_is(self):
        done = self.run_tool("factor", self.a, self.q, "--device", "no-such-device", expect=(4,))
        self.assertIn("0", done.stderr)

    def test_all_devices_give_the_bits_of_one(self):
        import h5py

        # Two devices of PoCL that share the processor.
        two = {"POCL_DEVICES": "pthread pthread"}
        for shape, mode in (("50x20x12", "reduced"), ("51x20x12", "r"), ("1x20x12", "raw"), ("7x40x40", "reduced")):
            self.run_tool("generate", "--shape", shape, self.a, "-q", "--force")
            found = []
            for device in ("0", "all"):
                done = self.run_tool("factor", self.a, self.q, "--device", device, "--mode", mode, "--force", "--json",
                                     env=two)
                self.assertEqual("2 x " in done.stdout, device == "all", done.stdout)
                with h5py.File(self.q) as file:
                    found.append({key: file[key][:].tobytes() for key in ("Q", "R", "V", "tau") if key in file})
                    found[-1]["status"] = file["report/status"][:].tobytes()
            self.assertEqual(*found)

    def test_one_of_several_devices_fails(self):
        two = {"POCL_DEVICES": "pthread pthread", "OPENCL_LAYERS": LAYER, "QRTOOL_FAIL_CL": "clEnqueueNDRangeKernel:2:-5"}
        done = self.run_tool("factor", self.a, self.q, "--device", "all", env=two, expect=(4,))
        self.assertTrue(done.stderr.startswith("qrtool: "), done.stderr)
        self.assertFalse(os.path.exists(self.q))

    def test_a_device_that_does_nothing_is_not_trusted(self):
        # No kernel runs, so the device has summed nothing of what was sent to it.
        self.run_tool("generate", "--shape", "6000x8x8", self.a, "-q", "--force")
        idle = {"OPENCL_LAYERS": LAYER, "QRTOOL_FAIL_CL": "clEnqueueNDRangeKernel:0:0"}
        done = self.run_tool("factor", self.a, self.q, "--backend", "opencl", "--variant", "opencl/small",
                             env=idle, expect=(4,))
        self.assertTrue(done.stderr.startswith("qrtool: "), done.stderr)
        self.assertFalse(os.path.exists(self.q))

    def test_auto_never_takes_a_cpu_device(self):
        self.assertIn("--backend auto takes cpu", self.run_tool("devices", "--shape", "100000x64x64").stdout)

    def test_failed_build(self):
        for nth, program in ((1, "checksums"), (2, "opencl/"), (3, "the check")):
            done = self.factor_failing("clBuildProgram", nth, -11, (4,))
            self.assertIn(program, done.stderr)

    def test_no_context(self):
        for code in (-5, -6):
            self.factor_failing("clCreateContext", 1, code, (4, 6))

    def test_memory_runs_out(self):
        for nth in range(0, 14):
            for code in OUT_OF_MEMORY:
                self.factor_failing("clCreateBuffer", nth, code, (0, 4, 6))

    def layer(self, **settings):
        return {"OPENCL_LAYERS": LAYER, **settings}

    def test_one_wrong_bit_on_the_way_is_noticed(self):
        # A is 50x20x12; a bit of a matrix in the middle, which the host does not measure again.
        middle = 8 * (25 * 20 * 12 * 4 + 1001) + 3
        copies = [("clEnqueueWriteBuffer", 1, "A"), ("clEnqueueReadBuffer", 1, "Q"), ("clEnqueueReadBuffer", 2, "R"),
                  ("clEnqueueReadBuffer", 3, "A|Q|R|errors"), ("clEnqueueReadBuffer", 4, "errors")]
        for call, nth, name in copies:
            # A low bit of a mantissa changes no verdict, so that only a checksum can see it.
            bit = middle if name in "AQ" else 8 * 12 * 12 * 4 * 20 if name == "R" else 8 * 48 * 20 + 1
            env = self.layer(QRTOOL_FLIP_CL=f"{call}:{nth}:{bit}")
            done = self.run_tool("factor", self.a, self.q, "--variant", "opencl/small", env=env, expect=(4,))
            self.assertRegex(done.stderr, f"({name}) of matrix \\d+ of the chunk did not (arrive|come back)", (call, nth))
            self.assertEqual(set(os.listdir(self.folder)), {"a.h5"})

    def test_a_kernel_that_does_not_run_gives_no_verdict(self):
        big = os.path.join(self.folder, "big.h5")
        self.run_tool("generate", "--shape", "2x300x200", big, "-q")
        for kernel in ("measure_residual", "measure_gram", "measure_r", "finish_errors", "sum_words"):
            done = self.run_tool("factor", self.a, self.q, "--variant", "opencl/small", "--force", "--json",
                                 env=self.layer(QRTOOL_SKIP_CL=kernel), expect=(0, 1, 4))
            if done.returncode != 0:
                continue
            # The host has measured every matrix itself.
            for name, worst in json.loads(done.stdout)["check"]["worst"].items():
                self.assertLessEqual(worst["ratio"], 1, (kernel, name))
            self.run_tool("verify", self.a, self.q)

    def test_a_driver_that_ends_the_process_leaves_nothing(self):
        for call in ("clCreateContext", "clCreateBuffer", "clBuildProgram", "clEnqueueNDRangeKernel"):
            for nth, how in ((1, "ended the process"), (-1, "crashed")):
                done = self.run_tool("factor", self.a, self.q, "--backend", "opencl", expect=(4,),
                                     env=self.layer(QRTOOL_END_CL=f"{call}:{nth}"))
                self.assertIn(f"qrtool: the OpenCL driver {how}", done.stderr, call)
                self.assertIn("hint: --backend cpu", done.stderr)
                self.assertEqual(set(os.listdir(self.folder)), {"a.h5"}, call)

    def test_a_cache_that_pocl_cannot_use(self):
        garbage = os.path.join(self.folder, "cache")
        with open(garbage, "w", encoding="ascii") as file:
            file.write("no folder")
        for cache in ("", garbage, os.path.join(garbage, "below")):
            done = self.run_tool("factor", self.a, self.q, "--backend", "opencl", env={"POCL_CACHE_DIR": cache},
                                 expect=(0, 4))
            self.assertLessEqual(set(os.listdir(self.folder)), {"a.h5", "cache"} | ({"q.h5"} if done.returncode == 0 else set()))
            if done.returncode == 0:
                self.run_tool("verify", self.a, self.q)
                os.remove(self.q)

    def test_lost_device(self):
        for call in ("clEnqueueNDRangeKernel", "clEnqueueReadBuffer", "clEnqueueWriteBuffer", "clWaitForEvents"):
            for nth in (1, 2, 3, 5):
                for code in LOST:
                    done = self.factor_failing(call, nth, code, (0, 4, 6))
                    if nth == 1:
                        self.assertEqual(done.returncode, 4, (call, done.stderr))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[4:], verbosity=1)
