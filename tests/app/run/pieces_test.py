#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One large matrix goes to a device and back in pieces, small ones here."""
import os
import resource
import signal
import subprocess
import sys
import time
import unittest

from opencl_tool import QRTOOL, OpenclTool


STALE_READS = sys.argv[3]
SHAPE = "1030x520"  # fewer columns are measured again by the host


class Pieces(OpenclTool):
    def test_pieces_give_the_factors_of_the_whole(self):
        self.run_tool("generate", "--shape", f"2x{SHAPE}", "--precision", "single", self.a, "-q",
                      "--force")
        for options in ((), ("--check", "none", "--sign", "lapack")):
            stored = []
            for env in ({}, self.PIECES):
                done = self.run_tool("factor", self.a, self.q, "--variant", "opencl/large",
                                     "--explain", "--force", *options, env=env)
                self.assertEqual("64 KiB of a matrix at a time" in done.stderr, bool(env))
                with open(self.q, "rb") as file:
                    stored.append(file.read())
            self.assertEqual(*stored, options)
        done = self.run_tool("factor", self.a, self.q, "--variant", "opencl/large", "--explain",
                             "--order", "column", "--force", env=self.PIECES)
        self.assertIn("matrices at a time", done.stderr)

    def test_pieces_with_nan_a_full_disk_and_signals(self):
        import numpy as np

        random = np.random.default_rng(9)
        a = random.standard_normal((1030, 520)).astype(np.float32)
        self.write("a.h5", A=a)
        command = ("factor", self.a, self.q, "--variant", "opencl/large")

        def full():
            resource.setrlimit(resource.RLIMIT_FSIZE, (2000000, 2000000))

        done = subprocess.run([QRTOOL, *command], env=dict(os.environ, **self.PIECES),
                              capture_output=True, text=True, check=False, preexec_fn=full)
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertEqual(set(os.listdir(self.folder)), {"a.h5"})
        for seconds in (0.1, 0.2, 0.3, 0.4, 0.6):
            running = subprocess.Popen([QRTOOL, *command], env=dict(os.environ, **self.PIECES),
                                       stderr=subprocess.DEVNULL)
            time.sleep(seconds)
            running.send_signal(signal.SIGTERM)
            running.wait()
            if os.path.exists(self.q):  # the signal came after the output was complete
                self.run_tool("verify", self.a, self.q)
                os.remove(self.q)
            self.assertEqual(set(os.listdir(self.folder)), {"a.h5"}, seconds)

        a[777, 5] = np.nan
        self.write("a.h5", A=a)
        stored = []
        for env in ({}, self.PIECES):
            done = self.run_tool(*command, "--force", env=env, expect=(1,))
            self.assertIn("NaN", done.stderr)
            with open(self.q, "rb") as file:
                stored.append(file.read())
        self.assertEqual(*stored)

    def test_host_memory_does_not_grow_with_a_matrix_in_pieces(self):
        """PoCL's device memory is the host's, so that its buffers are subtracted. The first run of
        a size may build kernels, which takes memory of its own, and does not count."""
        on_host = []
        for rows in (1030, 1030, 4120, 4120):  # 4 and 15 times the six pieces
            self.run_tool("generate", "--shape", f"{rows}x520", "--precision", "single", self.a,
                          "-q", "--force")
            peak = os.path.join(self.folder, "peak")
            env = self.layer(QRTOOL_PRETEND="piece=98304", QRTOOL_PEAK_CL=peak)
            done = subprocess.Popen([QRTOOL, "factor", self.a, self.q, "--variant", "opencl/large",
                                     "--force", "-q"], env=dict(os.environ, **env))
            _, status, used = os.wait4(done.pid, 0)
            self.assertEqual(status, 0)
            with open(peak, encoding="ascii") as file:
                on_host.append(used.ru_maxrss * 1024 - int(file.read()))
        self.assertLess(max(on_host[1::2]) - min(on_host[1::2]), 6 << 20, on_host)

    def test_pieces_with_one_wrong_bit_or_a_failing_call(self):
        self.run_tool("generate", "--shape", SHAPE, "--precision", "single", self.a, "-q",
                      "--force")
        for call, nth, name in (("clEnqueueWriteBuffer", 1, "A did not arrive"),
                                ("clEnqueueWriteBuffer", 33, "A did not arrive"),
                                ("clEnqueueReadBuffer", 1, "(A|Q|R|the errors) did not"),
                                ("clEnqueueReadBuffer", 3, "Q did not come back"),
                                ("clEnqueueReadBuffer", 35, "Q did not come back"),
                                ("clEnqueueReadBuffer", 39, "R did not come back")):
            env = self.layer(**self.PIECES, QRTOOL_FLIP_CL=f"{call}:{nth}:35")
            done = self.run_tool("factor", self.a, self.q, "--variant", "opencl/large", env=env,
                                 expect=(4,))
            self.assertRegex(done.stderr, name, (call, nth))
            self.assertEqual(set(os.listdir(self.folder)), {"a.h5"})
        faults = [("clCreateBuffer", nth, -4, (0, 6)) for nth in (1, 5, 9, 12)]
        faults += [(call, nth, -5, (4,)) for call in ("clEnqueueWriteBuffer", "clEnqueueReadBuffer",
                                                      "clEnqueueNDRangeKernel", "clWaitForEvents")
                   for nth in (1, 3)]
        for call, nth, code, expect in faults:
            env = self.layer(**self.PIECES, QRTOOL_FAIL_CL=f"{call}:{nth}:{code}")
            self.run_tool("factor", self.a, self.q, "--variant", "opencl/large", "--force", env=env,
                          expect=expect)

    def test_a_failing_call_frees_nothing_that_is_being_read(self):
        """gram_tiles has routes, which are read beside the errors and the sums."""
        self.run_tool("generate", "--shape", SHAPE, "--precision", "single", self.a, "-q",
                      "--force")
        env = self.layer(**self.PIECES, LD_PRELOAD=STALE_READS,
                         ASAN_OPTIONS="verify_asan_link_order=0",
                         POCL_EXTRA_BUILD_FLAGS="-cl-opt-disable")
        for nth in (3, 4):
            env["QRTOOL_FAIL_CL"] = f"clEnqueueReadBuffer:{nth}:-5"
            self.run_tool("factor", self.a, self.q, "--variant", "opencl/gram_tiles", env=env,
                          expect=(4,))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[4:])
