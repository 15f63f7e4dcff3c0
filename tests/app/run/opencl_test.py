#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the OpenCL backend as a user does, and with faults: no platform, failed builds, no memory
left, a lost device. Every failing call must end with the exit code of its class and no output, or
with a correct output."""
import json
import os
import re
import subprocess
import sys
import time
import unittest

from opencl_tool import LAYER, QRTOOL, OpenclTool

OUT_OF_MEMORY = (-4, -61)  # CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_INVALID_BUFFER_SIZE
LOST = (-5, -36)  # CL_OUT_OF_RESOURCES, CL_INVALID_COMMAND_QUEUE


# PoCL builds kernels for every shape, so that tests share shapes where they can, also with those of
# gpu. Everyday tests take the two codes of a failure in turn; the long one takes both everywhere.
ALL = "QRTOOL_TEST_ALL" in os.environ


def in_turn(codes, nth):
    return codes if ALL or nth < 2 else codes[nth % 2:][:1]


class Opencl(OpenclTool):
    def factor_failing(self, call, nth, code, expect, *options):
        """Lets one call fail. The output must be correct or missing."""
        env = {"OPENCL_LAYERS": LAYER, "QRTOOL_FAIL_CL": f"{call}:{nth}:{code}"}
        done = self.run_tool("factor", self.a, self.q, "--backend", "opencl", *options, env=env,
                             expect=expect)
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

        for variant, shape in (("opencl/small", "9x12x12"), ("opencl/blocked", "3x33x33"),
                               ("opencl/large", "3x40x36"), ("opencl/textbook", "3x33x33")):
            self.run_tool("generate", "--shape", shape, self.a, "-q", "--force")
            self.run_tool("factor", self.a, self.q, "--variant", variant, "--force")
            self.run_tool("verify", self.a, self.q)
            with h5py.File(self.q) as file:
                self.assertEqual(file.attrs["variant"], variant)
                self.assertEqual(file.attrs["backend"], "opencl")

    def test_a_device_without_float64_factors_float32(self):
        import h5py

        pretend = dict(os.environ, QRTOOL_PRETEND="no-float64")
        for shape, options in (("20x32x32", ()), ("3x90x40", ("--mode", "raw")),
                               ("3x40x90", ("--mode", "r")), ("2x32x32", ("--check", "none")),
                               ("5x8x8", ()), ("3x20x90", ()), ("1x9000x20", ("--sign", "lapack")),
                               ("1x520x300", ())):
            self.run_tool("generate", "--shape", shape, "--precision", "single", self.a, "-q",
                          "--force")
            self.run_tool("factor", self.a, self.q, "--backend", "opencl", "--force", *options,
                          env=pretend)
            self.run_tool("verify", self.a, self.q)
            with h5py.File(self.q) as file:
                self.assertEqual(file.attrs["backend"], "opencl")
                self.assertEqual(file.attrs["arithmetic"], "float32")
                checked = 0 if "--check" in options else file["report/residual"].size
                self.assertEqual((file["report/residual"][:] > 0).sum(), checked)
        self.run_tool("generate", "--shape", "3x40x30", "--precision", "double", self.a, "-q",
                      "--force")
        done = self.run_tool("factor", self.a, self.q, "--backend", "opencl", "--force",
                             env=pretend, expect=(2, 4, 6))
        self.assertIn("no float64", done.stderr)

    def test_a_device_with_little_local_memory(self):
        little = {"QRTOOL_PRETEND": "local-memory=32768"}
        for shape, precision, options in (
                ("1x150x140", "single", ()), ("1x90x70", "double", ("--mode", "raw")),
                *([("1x200x150", "double", ()), ("1x140x200", "single", (
                    "--precision=mixed", "--mode", "complete"))] * ALL)):
            self.run_tool("generate", "--shape", shape, "--precision", precision, self.a, "-q",
                          "--force")
            self.run_tool("factor", self.a, self.q, "--variant", "opencl/large", "--force",
                          *options, env=little)
            self.run_tool("verify", self.a, self.q)

    def test_a_matrix_behind_another_does_not_change_its_solution(self):
        import h5py
        import numpy as np

        # R has no room in local memory, and 129 columns are no multiple of eight.
        little = {"QRTOOL_PRETEND": "local-memory=32768"}
        random = np.random.default_rng(7)
        a, b = random.standard_normal((2, 150, 129), np.float32), random.standard_normal((2, 150))
        found = []
        for entry in (1, np.nan):
            a[1, 3, 3] = entry
            self.run_tool("solve", self.write("a.h5", A=a), self.write("b.h5", b=b), self.q,
                          "--force", "--precision", "single", "--backend", "opencl", env=little,
                          expect=(0, 1))
            with h5py.File(self.q) as file:
                found.append((file["X"][0], file["se"][0], file["report/backward_error"][0]))
        for plain, beside_nan in zip(*found):
            np.testing.assert_array_equal(plain, beside_nan)

    def test_a_device_that_flushes_denormals_refuses_them(self):
        import h5py
        import numpy as np

        flushing = dict(os.environ, QRTOOL_PRETEND="no-denormals")
        a = np.random.default_rng(3).standard_normal((4, 30, 20))
        for scale, expect in ((1, 0), (2.0**-90, 0), (2.0**-120, 4), (2.0**-135, 4)):
            with h5py.File(self.a, "w") as file:
                file["A"] = (a * np.array([1, 1, scale, 1])[:, None, None]).astype("f4")
            done = self.run_tool("factor", self.a, self.q, "--backend", "opencl", "--force",
                                 env=flushing, expect=(expect,))
            if expect != 0:
                self.assertIn("takes numbers below 2^-126 as 0", done.stderr)
                self.assertIn("matrix 2", done.stderr)
            self.run_tool("factor", self.a, self.q, "--backend", "opencl", "--force")

    def test_an_accelerator_is_no_gpu(self):
        accelerator = self.layer(QRTOOL_DEVICE_CL="accelerator")
        done = self.run_tool("factor", self.a, self.q, "--backend", "gpu", "--dry-run",
                             env=accelerator, expect=(4,))
        self.assertIn("hint: --backend opencl runs on it", done.stderr)
        done = self.run_tool("devices", "--shape", "100000x64x64", env=accelerator)
        self.assertIn("--backend auto takes cpu", done.stdout)
        self.run_tool("factor", self.a, self.q, "--backend", "opencl", env=accelerator)
        self.run_tool("verify", self.a, self.q)

    def test_a_device_that_is_not_available_is_left_out(self):
        unavailable = self.layer(QRTOOL_DEVICE_CL="unavailable")
        done = self.run_tool("devices", "--json", env=unavailable)
        self.assertNotIn("opencl/", done.stdout)
        self.run_tool("factor", self.a, self.q, "--backend", "opencl", env=unavailable,
                      expect=(4,))
        self.run_tool("factor", self.a, self.q, env=unavailable)

    def test_a_kernel_with_too_many_registers_for_its_group(self):
        self.run_tool("generate", "--shape", "3x40x30", self.a, "-q", "--force")
        few = self.layer(QRTOOL_GROUP_CL="16")
        done = self.run_tool("factor", self.a, self.q, "--backend", "opencl", "--force",
                             env={**os.environ, **few}, expect=(4,))
        self.assertIn("work-groups of", done.stderr)
        self.assertIn("hint: --backend cpu", done.stderr)

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
            self.run_tool("factor", self.a, self.q, "--backend", "opencl", "--mode", mode,
                          "--force")
            self.run_tool("factor", self.a, other, "--backend", "cpu", "--mode", mode, "--force")
            with h5py.File(self.q) as ours, h5py.File(other) as cpu:
                for name in set(ours) - {"report"}:
                    if (mode, name) == ("complete", "Q"):
                        continue  # its last columns are not unique
                    np.testing.assert_allclose(ours[name][:], cpu[name][:], atol=2e-5)

    def test_no_platform(self):
        nowhere = {"OCL_ICD_VENDORS": "/nonexistent"}
        done = self.run_tool("factor", self.a, self.q, "--backend", "opencl", env=nowhere,
                             expect=(4,))
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
        for shape, mode in (("50x20x12", "reduced"), ("51x20x12", "r"), ("1x20x12", "raw"),
                            ("3x40x40", "reduced")):
            self.run_tool("generate", "--shape", shape, self.a, "-q", "--force")
            found = []
            for device in ("0", "all"):
                done = self.run_tool("factor", self.a, self.q, "--device", device, "--mode", mode,
                                     "--force", "--json",
                                     env=two)
                self.assertEqual("2 x " in done.stdout, device == "all", done.stdout)
                with h5py.File(self.q) as file:
                    found.append({key: file[key][:].tobytes() for key in ("Q", "R", "V", "tau")
                                  if key in file})
                    found[-1]["status"] = file["report/status"][:].tobytes()
            self.assertEqual(*found)

    def test_one_of_several_devices_fails(self):
        two = {"POCL_DEVICES": "pthread pthread", "OPENCL_LAYERS": LAYER,
               "QRTOOL_FAIL_CL": "clEnqueueNDRangeKernel:2:-5"}
        done = self.run_tool("factor", self.a, self.q, "--device", "all", env=two, expect=(4,))
        self.assertTrue(done.stderr.startswith("qrtool: "), done.stderr)
        self.assertFalse(os.path.exists(self.q))

    def test_a_device_that_does_nothing_is_not_trusted(self):
        # No kernel runs, so the device has summed nothing of what was sent to it.
        self.run_tool("generate", "--shape", "6000x8x8", self.a, "-q", "--force")
        idle = {"OPENCL_LAYERS": LAYER, "QRTOOL_FAIL_CL": "clEnqueueNDRangeKernel:0:0"}
        done = self.run_tool("factor", self.a, self.q, "--backend", "opencl", "--variant",
                             "opencl/small",
                             env=idle, expect=(4,))
        self.assertTrue(done.stderr.startswith("qrtool: "), done.stderr)
        self.assertFalse(os.path.exists(self.q))

    def solve(self, a, b, *options, env=None, expect=(0,), backend="opencl", verify=()):
        """Solves on the device, verifies with the options `verify`, and returns all numbers of the
        output with its backend."""
        import h5py

        x = os.path.join(self.folder, "x.h5")
        if os.path.exists(x):
            os.remove(x)
        done = self.run_tool("solve", a, b, x, "--backend", backend, *options, env=env,
                             expect=expect)
        if done.returncode > 1:
            self.assertFalse(os.path.exists(x))
            self.assertTrue(done.stderr.startswith("qrtool: "), done.stderr)
            return None, None
        self.run_tool("verify", a, b, x, *verify, expect=(done.returncode,))
        with h5py.File(x) as file:
            numbers = {name: file[name][...] for name in ("X", "se") if name in file}
            numbers.update({name: file["report"][name][...] for name in file["report"]})
            return numbers, file.attrs["backend"]

    def test_solve_agrees_with_the_cpu(self):
        import numpy as np

        random = np.random.default_rng(3)
        long = (16, 29, 33)  # rows of systems that everyday tests leave out
        for m, n, sides, dtype in ((29, 9, 1, "f8"), (28, 12, 1, "f8"), (40, 17, 3, "f4"),
                                   (16, 4, 2, "f8"), (33, 33, 1, "f4"), (4200, 4, 1, "f8")):
            a = random.standard_normal((20, m, n)).astype(dtype)
            b = random.standard_normal((20, m, sides)).astype(dtype)
            if m in long and not ALL:
                continue
            a[7] = 0                  # no column
            a[11, :, 1] = a[11, :, 0]  # dependent columns
            a[13, 2, 1] = np.nan
            b[17, 3, 0] = np.inf
            first = self.write("one.h5", A=a)
            vectors = b[:, :, 0] if sides == 1 else b
            ours, backend = self.solve(first, self.write("b.h5", b=vectors), expect=(1,))
            self.assertEqual(backend, "opencl")
            cpu, backend = self.solve(first, self.write("b.h5", b=vectors), expect=(1,),
                                      backend="cpu")
            self.assertEqual(backend, "cpu")
            self.assertEqual(set(ours), set(cpu))
            for name in ("rank", "status"):
                np.testing.assert_array_equal(ours[name], cpu[name], name)
            scale = np.finfo(dtype).eps
            size = np.abs(np.nan_to_num(cpu["X"])).max(axis=tuple(range(1, cpu["X"].ndim)))
            for i, condition in enumerate(cpu["condition"]):
                np.testing.assert_array_equal(np.isnan(ours["X"][i]), np.isnan(cpu["X"][i]))
                if np.isfinite(condition):
                    np.testing.assert_allclose(ours["X"][i], cpu["X"][i], rtol=0,
                                               atol=100 * scale * condition**2 * size[i])

    def test_solve_estimates_the_conditions_of_each_matrix(self):
        import numpy as np

        random = np.random.default_rng(9)
        # A work-item, a team of four, and a larger team for each matrix.
        for n, dtype in ((4, "f8"), (8, "f4"), (12, "f8"), (17, "f4"), *([(37, "f4")] * ALL)):
            a = random.standard_normal((20, 45, n)) * 1.7 ** (np.arange(n) % 9)
            files = self.write("a.h5", A=a.astype(dtype)), self.write(
                "b.h5", b=random.standard_normal((20, 45)).astype(dtype))
            found, backend = self.solve(*files)
            self.assertEqual(backend, "opencl")
            norms = np.linalg.norm(a, axis=1, keepdims=True)
            for name, matrix in (("condition", a),
                                 ("scaled_condition", a * 2.0 ** (-1 - np.floor(np.log2(norms))))):
                ratio = found[name] / np.linalg.cond(matrix)
                self.assertLess(ratio.max(), 1 + 1e-5, (name, n))
                self.assertGreater(ratio.min(), 0.6, (name, n))

    def test_solve_has_the_same_bits_in_any_batch(self):
        import numpy as np

        random = np.random.default_rng(4)
        a, b = random.standard_normal((70, 24, 5)), random.standard_normal((70, 24))
        bad = b.copy()
        bad[3] = np.nan
        whole, _ = self.solve(self.write("one.h5", A=a), self.write("b.h5", b=b))
        part, _ = self.solve(self.write("one.h5", A=a[20:31]), self.write("b.h5", b=b[20:31]))
        beside, _ = self.solve(self.write("one.h5", A=a), self.write("b.h5", b=bad), expect=(1,))
        for name in whole:
            np.testing.assert_array_equal(part[name], whole[name][20:31], name)
            np.testing.assert_array_equal(np.delete(beside[name], 3, 0),
                                          np.delete(whole[name], 3, 0), name)

    def test_solve_with_a_ridge(self):
        """Against NumPy and the CPU: matrices of their own, also wide ones and with gaps and
        weights, and one A for all with weights of each."""
        import numpy as np

        random = np.random.default_rng(11)
        a, b = random.standard_normal((40, 24, 5)), random.standard_normal((40, 24))
        a[3], a[4, :, 2] = 0, a[4, :, 1]
        weights = random.random((40, 24)) + 0.1
        gaps = b.copy()
        gaps[::7, 3] = np.nan
        of_each = "--weights", self.write("w.h5", w=weights)
        rows = "--rows", "last"
        for matrices, sides, w, options in (
                (a, b, None, ()), (a, gaps, weights, ("--missing", "skip", *of_each, *rows)),
                (a[:, :3], b[:, :3], None, ()), (a[0], b, weights, (*of_each, *rows))):
            one, two = self.write("one.h5", A=matrices), self.write("b.h5", b=sides)
            verify = of_each if w is not None else ()
            ours, backend = self.solve(one, two, "--ridge", "0.5", *options, verify=verify)
            self.assertEqual(backend, "opencl")
            cpu, _ = self.solve(one, two, "--ridge", "0.5", *options, verify=verify,
                                backend="cpu")
            self.assertEqual(set(ours), set(cpu))
            for name in ("rank", "status", "degrees_of_freedom"):
                np.testing.assert_array_equal(ours[name], cpu[name], name)
            np.testing.assert_allclose(ours["residual_norm"], cpu["residual_norm"], rtol=1e-11)
            own = np.broadcast_to(matrices, (40, *matrices.shape[-2:]))
            weigh = np.sqrt(np.where(np.isnan(sides), 0, 1 if w is None else w))
            weighed, right = own * weigh[..., None], np.nan_to_num(sides) * weigh
            gram = weighed.swapaxes(1, 2) @ weighed + 0.5 * np.eye(5)
            x = np.linalg.solve(gram, np.einsum("sij,si->sj", weighed, right)[..., None])[..., 0]
            np.testing.assert_allclose(ours["X"], x, rtol=1e-10, atol=1e-12)
            self.assertTrue((ours["X"] != cpu["X"]).any())  # the device has solved

    def test_solve_with_fewer_rows_than_columns(self):
        import numpy as np

        random = np.random.default_rng(12)
        a, b = random.standard_normal((40, 5, 12)), random.standard_normal((40, 5, 2))
        a[3], a[4, 2], a[5, 1, 1] = 0, a[4, 1], np.nan
        b[8] = 0
        a[9] *= 8.0 ** -np.arange(12)  # the condition is that with scaled columns
        one, two = self.write("one.h5", A=a), self.write("b.h5", b=b)
        ours, backend = self.solve(one, two, expect=(1,))
        self.assertEqual(backend, "opencl")
        cpu, _ = self.solve(one, two, expect=(1,), backend="cpu")
        self.assertEqual(set(ours), set(cpu))
        for name in ("rank", "status", "degrees_of_freedom"):
            np.testing.assert_array_equal(ours[name], cpu[name], name)
        self.assertLess(np.nanmax(ours["least_norm_error"]), 1e-14)
        conditions = ours["condition"][6:] / cpu["condition"][6:]
        self.assertTrue((conditions > 0.5).all() and (conditions < 4).all(), conditions)
        for i in set(range(40)) - {5}:
            x = np.linalg.lstsq(a[i], b[i], rcond=None)[0]
            np.testing.assert_allclose(ours["X"][i], x, rtol=0, atol=1e-12 * abs(x).max())
        self.assertTrue((ours["X"] != cpu["X"])[9:].any())  # the device has solved
        basic = "--basic", "--backend", "opencl", "--force"
        done = self.run_tool("solve", one, two, os.path.join(self.folder, "x.h5"), *basic,
                             expect=(1,))
        self.assertIn("a basic solution is asked for", done.stderr)

    def test_solve_says_what_stays_on_the_cpu(self):
        import numpy as np

        random = np.random.default_rng(5)
        a, b = random.standard_normal((5, 12, 3)), random.standard_normal((5, 12))
        x = os.path.join(self.folder, "x.h5")
        files = self.write("one.h5", A=a), self.write("b.h5", b=b), x
        for option in (("--ridge", "1e-300"), ("--covariance",)):
            done = self.run_tool("solve", *files, "--backend", "opencl", "--force", *option)
            self.assertIn("note: solved on the CPU: ", done.stderr)
        self.assertNotIn("note",
                         self.run_tool("solve", *files, "--force", "--ridge", "1e-300").stderr)
        nowhere = {"OCL_ICD_VENDORS": "/nonexistent"}
        self.run_tool("solve", *files, "--backend", "opencl", "--force", env=nowhere, expect=(4,))
        self.run_tool("solve", *files, "--force", env=nowhere)
        self.run_tool("solve", *files, "--device", "all", "--force", expect=(2,))
        self.run_tool("solve", *files, "--variant", "opencl/none", "--force", expect=(2,))
        self.run_tool("solve", *files, "--variant", "cpu/none", "--force", expect=(2,))

    def test_solve_with_faults(self):
        import numpy as np

        random = np.random.default_rng(6)
        a = self.write("one.h5", A=random.standard_normal((50, 20, 12)))
        b = self.write("b.h5", b=random.standard_normal((50, 20)))
        faults = [("clBuildProgram", nth, -11) for nth in (1, 2, 3)]
        faults += [("clCreateBuffer", nth, code) for nth in (1, 5, 9, 12, 15)
                   for code in in_turn(OUT_OF_MEMORY, nth)]
        faults += [(call, nth, -5) for call in ("clEnqueueNDRangeKernel", "clEnqueueReadBuffer",
                                                "clEnqueueWriteBuffer")
                   for nth in (1, 2, 4)]
        for call, nth, code in faults:
            env = self.layer(QRTOOL_FAIL_CL=f"{call}:{nth}:{code}")
            self.solve(a, b, env=env, expect=(0, 4, 6))

    def test_memory_for_one_item_is_enough_for_many(self):
        import numpy as np

        random = np.random.default_rng(8)
        # Items of 16 MiB, so that each is a part of its own, and parts are in flight together.
        a = random.standard_normal((3, 1 << 18, 8))
        b = random.standard_normal((3, 1 << 18))
        for count in (1, 3):
            self.write(f"a{count}.h5", A=a[:count])
            self.write(f"b{count}.h5", b=b[:count])

        def works(command, count, limit):
            files = {"factor": [f"a{count}.h5", "--mode", "r"],
                     "solve": [f"a{count}.h5", f"b{count}.h5"]}[command]
            files = [os.path.join(self.folder, f) if f.endswith(".h5") else f for f in files]
            # With kernels that PoCL has not optimised a run takes ten times as long.
            env = self.layer(QRTOOL_MEMORY_CL=str(limit), POCL_EXTRA_BUILD_FLAGS="")
            done = self.run_tool(command, *files, self.q, "--backend", "opencl", "--force",
                                 env=env, expect=(0, 6))
            if done.returncode == 6:
                self.assertIn("has no memory left for one 262144x8", done.stderr)
            return done.returncode == 0

        for command in ("factor", "solve"):
            limits = [int(a[0].nbytes * ratio) for ratio in (1.5, 1.25, 1.1, 0.9)]
            enough = [limit for limit in limits if works(command, 1, limit)]
            self.assertTrue(0 < len(enough) < len(limits), (command, enough))
            self.assertTrue(works(command, 3, enough[-1]), (command, enough[-1]))

    def test_solve_notices_a_wrong_bit(self):
        import numpy as np

        random = np.random.default_rng(7)
        a = self.write("one.h5", A=random.standard_normal((50, 20, 12)))
        b = self.write("b.h5", b=random.standard_normal((50, 20)))
        x = os.path.join(self.folder, "x.h5")
        for call, nth, bit, name in (("clEnqueueWriteBuffer", 1, 64 * 25 * 240 + 3, "A"),
                                     ("clEnqueueWriteBuffer", 2, 64 * 25 * 20 + 3, "b"),
                                     ("clEnqueueReadBuffer", 1, 64 * 25 * 12 + 3, "x")):
            env = self.layer(QRTOOL_FLIP_CL=f"{call}:{nth}:{bit}")
            done = self.run_tool("solve", a, b, x, "--variant", "opencl/small", env=env,
                                 expect=(4,))
            self.assertRegex(done.stderr,
                             f"{name} of system 25 of the chunk did not (arrive|come back)")

    def test_solve_without_a_kernel_gives_no_verdict(self):
        import numpy as np

        random = np.random.default_rng(8)
        a = self.write("one.h5", A=random.standard_normal((50, 20, 12)))
        b = self.write("b.h5", b=random.standard_normal((50, 20)))
        right, _ = self.solve(a, b)
        for kernel in ("solve_systems", "measure_factors", "check_solutions", "sum_words"):
            found, _ = self.solve(a, b, env=self.layer(QRTOOL_SKIP_CL=kernel), expect=(0, 4))
            if found is not None:
                np.testing.assert_allclose(found["X"], right["X"], rtol=1e-10, err_msg=kernel)
                self.assertLess(found["backward_error"].max(), 1e-14)

    def test_auto_never_takes_a_cpu_device(self):
        self.assertIn("--backend auto takes cpu",
                      self.run_tool("devices", "--shape", "100000x64x64").stdout)

    def test_failed_build(self):
        for nth, program in ((1, "checksums"), (2, "opencl/"), (3, "the check")):
            done = self.factor_failing("clBuildProgram", nth, -11, (4,))
            self.assertIn(program, done.stderr)

    def test_no_context(self):
        for code in (-5, -6):
            self.factor_failing("clCreateContext", 1, code, (4, 6))

    def test_memory_runs_out(self):
        for nth in range(0, 14):
            for code in in_turn(OUT_OF_MEMORY, nth):
                self.factor_failing("clCreateBuffer", nth, code, (0, 4, 6))

    def test_a_refused_matrix_that_has_no_room_for_further_passes_goes_on_by_reflectors(self):
        import numpy as np

        a = np.random.default_rng(3).standard_normal((1, 2600, 120))
        of_half_rank = a.copy()
        of_half_rank[:, :, 60:] = a[:, :, :60]
        files = [self.write(name, A=x) for name, x in (("a.h5", a), ("half.h5", of_half_rank))]
        options = ("--backend", "opencl", "--variant", "opencl/gram_twice", "--mode", "r",
                   "--force")
        peak = os.path.join(self.folder, "peak")
        self.run_tool("factor", files[0], self.q, *options, env=self.layer(QRTOOL_PEAK_CL=peak))
        with open(peak, encoding="utf-8") as file:
            enough = str(int(file.read()) * 5 // 4)
        for file in files:
            self.run_tool("factor", file, self.q, *options, env=self.layer(QRTOOL_MEMORY_CL=enough))

    def test_one_wrong_bit_on_the_way_is_noticed(self):
        # A is 50x20x12; a bit of a matrix in the middle, which the host does not measure again.
        middle = 8 * (25 * 20 * 12 * 4 + 1001) + 3
        copies = [("clEnqueueWriteBuffer", 1, "A"), ("clEnqueueReadBuffer", 1, "Q"),
                  ("clEnqueueReadBuffer", 2, "R"),
                  ("clEnqueueReadBuffer", 3, "errors"), ("clEnqueueReadBuffer", 4, "A|Q|R|errors")]
        for call, nth, name in copies:
            # A low bit of a mantissa changes no verdict, so that only a checksum can see it.
            bit = {"R": 8 * 12 * 12 * 4 * 20, "A": middle, "Q": middle}.get(name, 8 * 48 * 20 + 1)
            env = self.layer(QRTOOL_FLIP_CL=f"{call}:{nth}:{bit}")
            done = self.run_tool("factor", self.a, self.q, "--variant", "opencl/small", env=env,
                                 expect=(4,))
            self.assertRegex(done.stderr,
                             f"({name}) of matrix \\d+ of the chunk did not (arrive|come back)",
                             (call, nth))
            self.assertEqual(set(os.listdir(self.folder)), {"a.h5"})

    def test_copies_from_memory_that_cannot_be_locked_get_a_note(self):
        import numpy as np

        for pieces in ({}, self.PIECES):
            self.run_tool("generate", "--shape", "3x100x100", self.a, "-q", "--force")
            whole = self.factor_pageable("clEnqueueMapBuffer:9999:-4", pieces)
            self.assertNotIn("could not lock", whole)
            note = self.factor_pageable("clEnqueueMapBuffer:0:-4", pieces)
            self.assertRegex(note, "^qrtool: note: .* could not lock memory.*; its copies took "
                                   "longer\n$")
        self.assertEqual(self.factor_pageable("clEnqueueMapBuffer:0:-4", {}, "-q"), "")
        a, b, x = (os.path.join(self.folder, name) for name in ("a.npy", "b.npy", "x.npy"))
        np.save(a, np.random.default_rng(0).standard_normal((40, 20, 4)))
        np.save(b, np.random.default_rng(1).standard_normal((40, 20)))
        env = {"OPENCL_LAYERS": LAYER, "QRTOOL_FAIL_CL": "clEnqueueMapBuffer:0:-4"}
        said = self.run_tool("solve", a, b, x, "--backend", "opencl", env=env).stderr
        self.assertIn("could not lock memory", said)

    def factor_pageable(self, call, env, *options):
        """The messages of a run with this call failing, whose factors are right."""
        env = {"OPENCL_LAYERS": LAYER, "QRTOOL_FAIL_CL": call, **env}
        said = self.run_tool("factor", self.a, self.q, "--backend", "opencl", "--force", *options,
                             env=env).stderr
        self.run_tool("verify", self.a, self.q)
        return said

    def test_a_device_starts_before_its_input_can_be_read(self):
        note = os.path.join(self.folder, "context")
        env = {**os.environ, "OPENCL_LAYERS": LAYER, "QRTOOL_NOTE_CL": f"clCreateContext:{note}"}
        out = os.path.join(self.folder, "q.npy")
        with subprocess.Popen([QRTOOL, "factor", "-", out, "--backend", "opencl", "-q"], env=env,
                              stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            for _ in range(6000):
                if os.path.exists(note):
                    break
                time.sleep(0.01)
            self.assertTrue(os.path.exists(note), "the device waits for the input")
            said = process.communicate("1,2\n3,4\n5,6\n")[1]
        self.assertEqual(process.returncode, 0, said)

    def test_a_start_that_fails_beside_the_opening_is_told_as_ever(self):
        # PoCL's first contexts are those of small programs that find out what it can do.
        fails = {"OPENCL_LAYERS": LAYER, "QRTOOL_FAIL_CL": "clCreateContext:0:-5"}
        for options in (("--backend", "opencl"), ("--device", "0")):
            done = self.run_tool("factor", self.a, self.q, *options, env=fails, expect=(4,))
            self.assertRegex(done.stderr, r"^qrtool: .*: no context \(.*OpenCL error -5\)")
            self.assertEqual(os.listdir(self.folder), ["a.h5"])
        # What is wrong with the input is found by the other thread, which waits for this one.
        missing = os.path.join(self.folder, "none.h5")
        done = self.run_tool("factor", missing, self.q, "--backend", "opencl", env=fails,
                             expect=(3,))
        self.assertIn("none.h5", done.stderr)
        self.run_tool("factor", missing, self.q, "--backend", "opencl", expect=(3,))

    # A matrix that the host does not measure again goes in pieces, of 64 KiB in these tests.

    def test_a_kernel_that_does_not_run_gives_no_verdict(self):
        big = os.path.join(self.folder, "big.h5")
        self.run_tool("generate", "--shape", "2x300x200", big, "-q")
        for kernel in ("measure_residual", "measure_gram", "measure_r", "finish_errors",
                       "sum_words"):
            done = self.run_tool("factor", self.a, self.q, "--variant", "opencl/small", "--force",
                                 "--json",
                                 env=self.layer(QRTOOL_SKIP_CL=kernel), expect=(0, 1, 4))
            if done.returncode != 0:
                continue
            # The host has measured every matrix itself.
            for name, worst in json.loads(done.stdout)["check"]["worst"].items():
                self.assertLessEqual(worst["ratio"], 1, (kernel, name))
            self.run_tool("verify", self.a, self.q)

    def test_the_way_of_matrices_that_were_all_factored_again(self):
        # What the kernel did not write may even be no numbers, which no second try mends.
        done = self.run_tool("factor", self.a, self.q, "--variant", "opencl/gram", "--json",
                             env=self.layer(QRTOOL_SKIP_CL="factor_gram"), expect=(0, 1))
        said = json.loads(done.stdout)
        again = said["routes"]["second_try"]
        self.assertGreater(again, 0)
        self.assertEqual(said["backend"]["way"], f"all {again} by reflectors")

    def test_a_second_try_that_the_device_cannot_make_is_said(self):
        # The variant computes nothing, and the program of the second try does not build.
        self.run_tool("generate", "--shape", "9x40x20", self.a, "-q", "--force")
        for broken, is_of_cpu in (({}, False), ({"QRTOOL_BUILD_CL": "factor_vector"}, True)):
            env = self.layer(QRTOOL_SKIP_CL="factor_gram", **broken)
            done = self.run_tool("factor", self.a, self.q, "--variant", "opencl/gram", "--force",
                                 env=env)
            self.assertIn("9 matrices came from a second try by reflectors", done.stdout)
            # The build log is in the line of the note.
            self.assertEqual(bool(re.search("note: .*; the CPU made the second try", done.stderr)),
                             is_of_cpu, done.stderr)
            self.run_tool("verify", self.a, self.q)

    def test_a_driver_that_ends_the_process_leaves_nothing(self):
        for call in ("clCreateContext", "clCreateBuffer", "clBuildProgram",
                     "clEnqueueNDRangeKernel"):
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
            done = self.run_tool("factor", self.a, self.q, "--backend", "opencl",
                                 env={"POCL_CACHE_DIR": cache},
                                 expect=(0, 4))
            self.assertLessEqual(set(os.listdir(self.folder)),
                                 {"a.h5", "cache"} | ({"q.h5"} if done.returncode == 0 else set()))
            if done.returncode == 0:
                self.run_tool("verify", self.a, self.q)
                os.remove(self.q)

    def test_the_compiler_writes_nothing(self):
        cache = os.path.join(self.folder, "kernels")
        os.mkdir(cache)
        done = self.run_tool("factor", self.a, self.q, "--backend", "opencl",
                             env={"POCL_CACHE_DIR": cache})
        self.assertNotIn("generated", done.stderr)  # "1 warning generated."

    def test_lost_device(self):
        for call in ("clEnqueueNDRangeKernel", "clEnqueueReadBuffer", "clEnqueueWriteBuffer",
                     "clWaitForEvents"):
            for nth in (1, 2, 3, 5):
                for code in in_turn(LOST, nth):
                    done = self.factor_failing(call, nth, code, (0, 4, 6))
                    if nth == 1:
                        self.assertEqual(done.returncode, 4, (call, done.stderr))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:], verbosity=1)
