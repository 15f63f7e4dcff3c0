#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""qrtool_test.py LIBRARY ROOT [DRAWS]: the Python package beside NumPy: what is odd about arrays,
and calls by chance. `qrtool_test.py installed - [DRAWS]` tests the package that Python finds."""
import os
import pathlib
import re
import signal
import sys
import threading
import time
import unittest
import warnings

import numpy as np

try:
    import scipy.linalg
except ImportError:
    scipy = None

if sys.argv[1] != "installed":
    os.environ["QRTOOL_LIBRARY"] = sys.argv[1]
    sys.path.insert(0, str(pathlib.Path(sys.argv[2]) / "app/python"))
import qrtool  # noqa: E402

DRAWS = int(sys.argv[3]) if len(sys.argv) > 3 else 200
TYPES = (np.float64, np.float32, np.complex128, np.complex64)


def numbers(chance, shape, dtype):
    array = chance.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        array = array + 1j * chance.standard_normal(shape)
    return array.astype(dtype)


def in_some_order(chance, array):
    """The same numbers, with other strides."""
    order = chance.integers(6)
    if order == 0:
        return np.asfortranarray(array)
    if order == 1:
        return np.swapaxes(np.swapaxes(array, -1, -2).copy(), -1, -2)
    if order == 2:
        wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1] + 1), array.dtype)
        wide[..., 1::2] = array
        return wide[..., 1::2]
    if order == 3:
        return np.ascontiguousarray(array[..., ::-1, ::-1])[..., ::-1, ::-1]
    if order == 4:
        array = array.copy()
        array.flags.writeable = False
        return array
    return array


class Qr(unittest.TestCase):
    def assert_close(self, one, other, scale):
        self.assertEqual((one.shape, one.dtype), (other.shape, other.dtype))
        u = np.finfo(one.dtype).eps
        self.assertTrue(np.all(np.abs(one - other) <= 1e3 * u * max(scale, 1)), (one, other))

    def test_calls_by_chance_are_those_of_numpy(self):
        chance = np.random.default_rng(7)
        for _ in range(DRAWS):
            batch = tuple(chance.integers(0, 4, chance.integers(3)))
            m, n = chance.integers(0, 9, 2)
            m += n  # else R's rows and signs may be ill-determined
            a = numbers(chance, (*batch, m, n), TYPES[chance.integers(4)])
            given = in_some_order(chance, a)
            mode = ("reduced", "complete", "r", "raw")[chance.integers(4)]
            with self.subTest(shape=a.shape, dtype=a.dtype, strides=given.strides, mode=mode):
                ours = qrtool.qr(given, mode, sign="lapack", report=True)
                theirs = np.linalg.qr(a, mode)
                theirs = theirs if isinstance(theirs, tuple) else (theirs,)
                scale = np.abs(a).max(initial=0) * max(m, 1)
                if mode == "complete":  # the columns of Q after the first n are free
                    self.assertEqual(ours[0].shape, theirs[0].shape)
                    self.assert_close(ours[0] @ ours[1], a, scale)
                    self.assert_close(ours[1], theirs[1], scale)
                else:
                    for one, other in zip(ours, theirs):
                        self.assert_close(one, other, scale)
                self.assertEqual(ours[-1].shape, batch)
                self.assertTrue(np.all(ours[-1].status == 0))
                if mode == "reduced":
                    self.assertTrue(qrtool.verify(given, ours[0], ours[1]))

    def test_least_squares_by_chance_are_those_of_numpy(self):
        chance = np.random.default_rng(8)
        for _ in range(DRAWS):
            batch = tuple(chance.integers(1, 4, chance.integers(3)))
            m, n, p = chance.integers(1, 9, 3)
            dtype = TYPES[chance.integers(4)]
            a = numbers(chance, (*batch, m + n, n), dtype)
            b = numbers(chance, (m + n,) if chance.integers(3) == 0 else (*batch, m + n, p), dtype)
            w = chance.random(m + n) + 0.1 if chance.integers(2) else None
            x, residues, rank, report = qrtool.lstsq(
                in_some_order(chance, a), b if b.ndim == 1 else in_some_order(chance, b), w,
                report=True)
            roots = np.ones(m + n) if w is None else np.sqrt(w)
            for place in np.ndindex(batch):
                of_b = b if b.ndim == 1 else b[place]
                own, squares, _, _ = np.linalg.lstsq(
                    a[place] * roots[:, None], of_b * (roots if b.ndim == 1 else roots[:, None]),
                    rcond=None)
                condition = np.linalg.cond(a[place] * roots[:, None])
                bar = 100 * np.finfo(dtype).eps * condition ** 2 * max(1, np.abs(own).max())
                self.assertEqual(x[place].dtype, np.dtype(dtype))
                self.assertTrue(np.all(np.abs(x[place] - own) <= bar))
                self.assertTrue(np.allclose(residues[place], squares[0] if b.ndim == 1 else squares,
                                            rtol=1e-3))
            self.assertTrue(np.all(np.asarray(rank) == n))
            self.assertTrue(np.all(report.status == 0))

    @unittest.skipUnless(scipy, "SciPy is not installed")
    def test_calls_by_chance_are_those_of_scipy(self):
        chance = np.random.default_rng(9)
        for _ in range(DRAWS):
            dtype = TYPES[chance.integers(4)]
            m, n = map(int, chance.integers(1, 12, 2))
            a = numbers(chance, (m, n), dtype)
            scale = np.linalg.norm(a)
            own = scipy.linalg.qr(a, mode="economic", pivoting=True)
            q, r, p = qrtool.qr(a, pivoting=True, sign="lapack")
            self.assertTrue(np.array_equal(p, own[2]), (p, own[2]))
            self.assert_close(q, own[0], 1)
            self.assert_close(r, own[1], scale)
            tall = numbers(chance, (m + 20, n), TYPES[chance.integers(4)])
            b = numbers(chance, (m + 20, 3), tall.dtype)
            x, residues, rank, _ = scipy.linalg.lstsq(tall, b)
            found = qrtool.lstsq(tall, b)
            self.assert_close(found.x, x, 10)
            self.assertTrue(np.allclose(found.residues, residues, rtol=1e-3))
            self.assertEqual(found.rank, rank)

    def test_signs_and_pivots(self):
        a = np.random.default_rng(1).standard_normal((4, 9, 5))
        self.assertTrue(np.all(np.diagonal(qrtool.qr(a, "r"), axis1=-2, axis2=-1) >= 0))
        for a in (a, a + 1j * a[::-1]):
            q, r, p, report = qrtool.qr(a, pivoting=True, condition=True, report=True)
            self.assertTrue(np.allclose(np.take_along_axis(a, p[:, None, :], -1), q @ r))
            self.assertTrue(qrtool.verify(a, q, r, p=p))
            self.assertFalse(qrtool.verify(a, q, r))
            self.assertTrue(np.all(report.rank == 5))
            true = np.linalg.cond(a)
            self.assertTrue(np.all(report.condition <= 1.001 * true))
            self.assertTrue(np.all(report.condition >= 0.7 * true))
            self.assertTrue(np.all(np.diff(np.abs(np.diagonal(r, axis1=-2, axis2=-1))) <= 1e-12))

    def test_other_types(self):
        whole = np.arange(12).reshape(4, 3) ** 2
        self.assertEqual(qrtool.qr(whole).R.dtype, np.float64)
        self.assertTrue(np.array_equal(qrtool.qr(whole).R, qrtool.qr(whole.astype(float)).R))
        self.assertEqual(qrtool.qr(whole.astype(np.float16)).Q.dtype, np.float32)
        self.assertEqual(qrtool.qr(whole.astype(">f8")).Q.dtype, np.float64)
        self.assertEqual(qrtool.qr(whole.tolist()).Q.shape, (4, 3))
        for wrong in (whole.astype(object), whole.astype(np.longdouble), np.array([["a"]])):
            self.assertRaises(TypeError, qrtool.qr, wrong)
        unaligned = np.zeros(97, np.uint8)[1:].view(np.float64).reshape(4, 3)
        self.assertEqual(qrtool.qr(unaligned).R.shape, (3, 3))
        mixed = qrtool.lstsq(1j * whole, whole[:, :1], errors=True)
        self.assertEqual([mixed[0].dtype, mixed[3].dtype], [np.complex128, np.float64])
        self.assertRaises(qrtool.CallError, qrtool.lstsq, whole, whole, 1j * np.ones(4))

    def test_a_bad_matrix_stays_alone(self):
        a = np.random.default_rng(2).standard_normal((3, 6, 2))
        clean = qrtool.qr(a)
        a[1, 0, 0] = np.nan
        q, r, report = qrtool.qr(a, report=True)
        names = [qrtool.STATUS_NAMES[status] for status in report.status]
        self.assertEqual(names, ["ok", "non_finite", "ok"])
        self.assertTrue(np.isnan(q[1]).all() and np.array_equal(q[::2], clean.Q[::2]))
        x = qrtool.lstsq(a, np.ones(6)).x
        self.assertTrue(np.isnan(x[1]).all() and np.isfinite(x[::2]).all())

    def test_what_is_too_large_warns(self):
        a = np.full((4, 1), np.finfo(np.float64).max)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            qrtool.qr(a, "r")
        self.assertEqual([w.category for w in caught], [qrtool.AccuracyWarning])

    def test_wrong_calls_say_what_is_wrong(self):
        a = np.ones((4, 2))
        wrong = ((qrtool.qr, (np.ones(3),), "dimension"), (qrtool.qr, (a, "full"), "mode"),
                 (qrtool.lstsq, (a, np.ones(3)), "rows"), (qrtool.verify, (a, a), "r is missing"),
                 (qrtool.verify, (a, a, np.ones((3, 3))), "r is"),
                 (qrtool.lstsq, (a, np.ones(4), np.ones(3)), "weights"),
                 (qrtool.lstsq, (a, np.ones(4), [1, 1, 1, -1]), "weights"),
                 (qrtool.open_device, ("cpu", 0, -1), "memory"),
                 (qrtool.open_device, ("cpu", 2**32), "threads"),
                 (qrtool.open_device, ("cpu", 1.5), "threads"),
                 (qrtool.open_device, (None,), "device"), (qrtool.last_run, (1.0,), "device"),
                 (qrtool.last_run, (True,), "device"))
        for function, arguments, word in wrong:
            with self.assertRaisesRegex(qrtool.CallError, word):
                function(*arguments)
        # Python has no option of the command line.
        with self.assertRaisesRegex(qrtool.DeviceError, "^(?!.*(--device|QRTOOL_DEVICE))"):
            qrtool.qr(a, device="no such device")
        with self.assertRaisesRegex(qrtool.CallError, "raw"):
            qrtool.qr(a, "raw", sign="positive")
        with self.assertRaises(qrtool.DeviceError):
            qrtool.qr(a, device=77)  # an index, as "77" is

    def test_permutations_are_whole_numbers(self):
        a = np.random.default_rng(4).standard_normal((4, 3))
        q, r, p = qrtool.qr(a, pivoting=True)
        for good in (p, list(p), p.astype(np.uint8), p.astype(float)):
            self.assertTrue(qrtool.verify(a, q, r, p=good))
        for wrong in (p + 0.3, p.astype(complex), np.ma.array(p, mask=[0, 1, 0]), p * np.nan,
                      p.astype(str), p == 0):
            with self.assertRaisesRegex(qrtool.CallError, "p "):
                qrtool.verify(a, q, r, p=wrong)

    def test_masked_values_are_missing(self):
        chance = np.random.default_rng(8)
        for dtype in (*TYPES, np.int64):
            a, b = numbers(chance, (9, 3), float), numbers(chance, (9, 2), float)
            a, b = (10 * a).astype(dtype), (10 * b).astype(dtype)
            masks = np.zeros((9, 3), bool), np.zeros((9, 2), bool)
            masks[0][4, 1] = masks[1][7, 0] = True
            masked_a, masked_b = np.ma.array(a, mask=masks[0]), np.ma.array(b, mask=masks[1])
            masked_weights = np.ma.array(np.ones(9), mask=masks[1][:, 0])
            masked_a.data[4, 1] = masked_b.data[7, 0] = 99
            wide = np.result_type(dtype, np.float32) if dtype != np.int64 else np.float64
            with_nan = [np.where(mask, np.nan, values).astype(wide)
                        for mask, values in zip(masks, (a, b))]
            expected = qrtool.lstsq(*with_nan, missing="skip")
            for given in ((masked_a, masked_b), (list(masked_a), masked_b)):
                found = qrtool.lstsq(*given, missing="skip")
                np.testing.assert_array_equal(found.x, expected.x)
            for call, name in ((lambda: qrtool.lstsq(masked_a, b), "a"),
                               (lambda: qrtool.lstsq(a, masked_b), "b"),
                               (lambda: qrtool.qr(masked_a), "a"),
                               (lambda: qrtool.verify(a, masked_a, a[:3]), "q"),
                               (lambda: qrtool.lstsq(a, b, masked_weights, missing="skip"),
                                "weights")):
                with self.assertRaisesRegex(qrtool.CallError, f"^{name} has 1 masked value;"):
                    call()
            np.testing.assert_array_equal(qrtool.qr(np.ma.array(a)).R, qrtool.qr(a).R)

    def test_every_right_side_has_its_rank(self):
        a = np.array([[1., 1], [1, 1], [1, 2], [1, 3]])
        b = np.array([[1., 1], [2, 2], [3, np.nan], [4, np.nan]])
        with_gaps = qrtool.lstsq(a, b, missing="skip")
        np.testing.assert_array_equal(with_gaps.rank, [2, 1])
        weighted = qrtool.lstsq(a, np.ones((4, 2)), np.array([[1., 1], [1, 1], [1, 0], [1, 0]]))
        np.testing.assert_array_equal(weighted.rank, [2, 1])
        self.assertEqual(qrtool.lstsq(a, b).rank, 2)
        self.assertEqual(qrtool.lstsq(a, b[:, 1], missing="skip").rank, 1)
        self.assertEqual(qrtool.lstsq(np.stack([a, a]), b, missing="skip").rank.shape, (2, 2))

    def test_an_intercept_is_put_before_the_columns(self):
        a, b = np.arange(10.).reshape(5, 2) ** 2, np.array([1., 5, 2, 8, 3])
        with_ones = np.column_stack([np.ones(5), a])
        found = qrtool.lstsq(a, b, intercept=True)
        np.testing.assert_allclose(found.x, np.linalg.lstsq(with_ones, b, rcond=None)[0],
                                   rtol=1e-9)
        several = qrtool.lstsq(np.stack([a, 2 * a]), b, intercept=True)
        np.testing.assert_allclose(several.x[1, 1:], found.x[1:] / 2, rtol=1e-9)
        flat = qrtool.lstsq(a, b + 100, intercept=True, ridge=1e12)
        self.assertAlmostEqual(flat.x[0], np.mean(b) + 100, places=3)

    def test_nan_is_an_error_where_that_is_asked_for(self):
        a, b = np.random.default_rng(3).standard_normal((2, 6, 2)), np.ones((6, 1))
        a[1, 4, 0] = np.nan
        self.assertTrue(np.isnan(qrtool.lstsq(a, b).x[1]).all())
        with self.assertRaisesRegex(qrtool.CallError, '1 of 2 right sides.*missing="skip"'):
            qrtool.lstsq(a, b, missing="error")
        qrtool.lstsq(a, b, missing="skip")
        qrtool.lstsq(a[0], b, missing="error")

    def test_a_limit_is_raised_in_words_of_python(self):
        qrtool.open_device("cpu", memory=1 << 20)
        with self.assertRaisesRegex(qrtool.MemoryLimitError, r"raise memory in open_device\(\)$"):
            qrtool.qr(np.ones((3000, 3000)), device="cpu")
        with self.assertRaisesRegex(qrtool.MemoryLimitError, "applying 400 x 400 factors"):
            qrtool.apply(np.ones((400, 1)), q=np.eye(400))
        qrtool.open_device("cpu")

    def test_no_argument_is_without_effect(self):
        with self.assertRaisesRegex(qrtool.CallError, "report=True"):
            qrtool.qr(np.eye(2), condition=True)
        with self.assertRaisesRegex(qrtool.CallError, r"b\[\.\.\., None\]"):
            qrtool.lstsq(np.ones((10, 5, 3)), np.ones((10, 5)))

    def test_a_type_that_numpy_lacks_is_named(self):
        class Tensor:
            dtype = "torch.bfloat16"
            def __dlpack__(self, **_):
                raise BufferError("Unsupported dtype")
            def __dlpack_device__(self):
                return 1, 0
        with self.assertRaisesRegex(qrtool.CallError, "^a is bfloat16; convert it to float32$"):
            qrtool.qr(Tensor())

    def test_no_result_lies_in_memory_that_is_used_again(self):
        chance = np.random.default_rng(4)
        a, b = chance.standard_normal((3000, 4, 2)), chance.standard_normal((3000, 4))[..., None]
        a[::3, :, 1] = 0
        qrtool.qr(a)  # whose reports are larger than all that follow
        _, _, report = qrtool.qr(a, report=True)
        found = [report, *qrtool.lstsq(a, b), *qrtool.lstsq(a, b, report=True), *qrtool.lstsq(
            a[0], b[:, :, 0].T)]
        before = [np.array(each) for each in found]
        for _ in range(2):
            qrtool.qr(a[::-1] * 2)
            q, r = qrtool.qr(a[::-1])
            self.assertTrue(qrtool.verify(a[::-1], q, r))
            qrtool.lstsq(a[::-1], b)
        for each, copy in zip(found, before):
            self.assertEqual(np.array(each).tobytes(), copy.tobytes())

    def test_memory_that_is_used_again_is_that_of_one_call(self):
        of_numbers = np.dtype([("number", "f8")])
        arrays = qrtool._arrays
        outer, inner = (arrays.memory_of((20000,), of_numbers, True) for _ in range(2))
        self.assertFalse(np.shares_memory(outer, inner))
        arrays.keep(outer)
        again = arrays.memory_of((10000,), of_numbers, True)
        self.assertTrue(np.shares_memory(outer, again))
        arrays.keep(again)
        self.assertTrue(np.shares_memory(outer, arrays.memory_of((20000,), of_numbers, True)))
        for shape, is_used_again in (((20000,), False), ((10,), True), ((1 << 22,), True)):
            arrays.keep(outer)
            self.assertFalse(np.shares_memory(
                outer, arrays.memory_of(shape, of_numbers, is_used_again)))

    def test_last_run_while_others_work(self):
        small, large = np.ones((3, 5, 3)), np.ones((40000, 4))
        expected = set()
        for array in (small, large):
            qrtool.qr(array, device="cpu")
            expected.add(tuple(qrtool.last_run("cpu").values()))
        is_over = threading.Event()

        def work():
            while not is_over.is_set():
                qrtool.qr(small, device="cpu")
                qrtool.qr(large, device="cpu")
        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        seen = {tuple(qrtool.last_run("cpu").values()) for _ in range(3000)}
        is_over.set()
        for thread in threads:
            thread.join()
        self.assertLessEqual(seen, expected)

    def test_a_call_runs_no_python_code_of_numpy(self):
        # Such code is most of what a call of a small matrix takes more than the C function.
        files = set()

        def note(frame, event, _):
            if event == "call":
                files.add(pathlib.Path(frame.f_code.co_filename).parent.name)

        a = np.ones((4, 2))
        qrtool.qr(a)  # opens the context
        sys.setprofile(note)
        try:
            qrtool.qr(a)
        finally:
            sys.setprofile(None)
        self.assertEqual(files - {"", "qrtool"}, set())  # "": what namedtuple() has made

    def test_threads_share_a_context(self):
        a = np.random.default_rng(3).standard_normal((50, 20, 5))
        expected, wrong = qrtool.qr(a), []

        def work():
            for _ in range(20):
                q, r = qrtool.qr(a)
                if not (np.array_equal(q, expected.Q) and np.array_equal(r, expected.R)):
                    wrong.append(1)
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_a_child_of_fork_works(self):
        a = np.random.default_rng(4).standard_normal((300, 40, 20))
        expected = qrtool.qr(a).R
        child = os.fork()
        if child == 0:
            same = np.array_equal(qrtool.qr(a).R, expected)
            os._exit(0 if same else 1)
        end = time.monotonic() + 30
        while time.monotonic() < end:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                break
            time.sleep(0.01)
        else:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            self.fail("the child waits for ever")
        self.assertEqual(status, 0)
        self.assertTrue(np.array_equal(qrtool.qr(a).R, expected))

    # ---- apply

    def product_of(self, b, product, given):
        """What apply() should give, in float64."""
        b = b.astype(np.complex128 if b.dtype.kind == "c" else np.float64)
        q, r, p = (given.get(name) for name in "qrp")
        if "h" in given:
            v = np.swapaxes(given["h"], -1, -2)
            n = v.shape[-1]
            m = v.shape[-2]
            r, q = np.triu(v[:n].astype(b.dtype)), np.eye(m, dtype=b.dtype)
            for j in reversed(range(min(m, n))):
                w = np.r_[np.zeros(j), 1, v[j + 1:, j]].astype(b.dtype)[:, None]
                q = q - given["tau"][j] * w @ (w.conj().T @ q)
        if product in ("qt", "q"):
            return (q.conj().swapaxes(-1, -2) if product == "qt" else q) @ b
        order = np.arange(r.shape[-1]) if p is None else p
        if product == "rinvt":
            return np.linalg.solve(r.conj().swapaxes(-1, -2).astype(b.dtype), b[order])
        x = np.empty_like(b)
        x[order] = np.linalg.solve(r.astype(b.dtype), b)
        return x

    def test_apply_by_chance(self):
        chance = np.random.default_rng(70)
        for _ in range(DRAWS):
            dtype = TYPES[chance.integers(4)]
            m, n, p = (int(chance.integers(1, 30)) for _ in range(3))
            m = max(m, n)
            a = numbers(chance, (m, n), dtype)
            mode = ("reduced", "complete", "raw", "r")[chance.integers(4)]
            pivoting = bool(chance.integers(2)) and mode in ("reduced", "r")
            found = qrtool.qr(a, mode, pivoting=pivoting)
            names = {"raw": ("h", "tau"), "r": ("r",)}.get(mode, ("q", "r"))
            found = found if isinstance(found, tuple) else (found,)
            given = dict(zip((*names, "p"), found))
            for product in ("qt", "q", "rinv", "rinvt"):
                if mode == "r" and product in ("qt", "q"):
                    continue
                if mode == "complete" and product.startswith("rinv") and m > n:
                    with self.assertRaises(qrtool.CallError):
                        qrtool.apply(np.ones((n, p)), product, r=given["r"])
                    continue
                columns = m if mode in ("raw", "complete") else n
                rows = n if product.startswith("rinv") else m if product == "qt" else columns
                b = numbers(chance, (rows, p), dtype)
                used = given if mode == "raw" else {
                    k: v for k, v in given.items() if k in ("q" if product[0] == "q" else "rp")}
                x, report = qrtool.apply(in_some_order(chance, b), product, report=True, **used)
                self.assertTrue((report.status == 0).all() and
                                (report.backward_error <= report.bar).all())
                wanted = self.product_of(b, product, given)
                u, size = np.finfo(dtype).eps, np.linalg.norm(wanted, axis=0)
                if product[0] == "q":
                    size = np.linalg.norm(b, axis=0)
                else:
                    size = size * np.linalg.cond(a)
                self.assertEqual((x.dtype, x.shape), (np.dtype(dtype), wanted.shape))
                self.assertTrue((np.linalg.norm(x - wanted, axis=0) <= 50 * u * m * size).all(),
                                (m, n, p, mode, product))

    def test_apply_broadcasts_and_refuses(self):
        chance = np.random.default_rng(71)
        a, b = chance.standard_normal((4, 1, 9, 3)), chance.standard_normal((5, 9, 2))
        q, r = qrtool.qr(a)
        self.assert_close(qrtool.apply(b, q=q), q.swapaxes(-1, -2) @ b, 10)
        self.assert_close(qrtool.apply(b[0, :, 0], q=q[0, 0]), q[0, 0].T @ b[0, :, 0], 10)
        h, tau = qrtool.qr(a, mode="raw")
        x = qrtool.apply(b, h=h, tau=tau)
        self.assertEqual(x.shape, (4, 5, 9, 2))
        self.assert_close(qrtool.apply(x, "q", h=h, tau=tau), np.broadcast_to(b, x.shape), 30)
        r[2, 0, 1, 1] = 0
        x, report = None, None
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            x, report = qrtool.apply(np.ones((3, 2)), "rinv", r=r, report=True)
        self.assertEqual(len(caught), 1)
        self.assertEqual(report.status[:, 0, 0].tolist(), [0, 0, 3, 0])
        self.assertTrue(np.isnan(x[2]).all() and np.isfinite(x[[0, 1, 3]]).all())
        for keywords, message in (({}, "needs q"), ({"h": h}, "h and tau"),
                                  ({"q": q[:3, 0]}, "belong"),
                                  ({"q": q[..., :5, :]}, "must have 5 rows"),
                                  ({"product": "qt2", "q": q}, "may be"),
                                  ({"product": "rinv", "r": r[..., :2, :]}, "square"),
                                  ({"product": "rinv", "r": np.eye(9), "p": [0] * 9}, "once")):
            with self.subTest(message=message), self.assertRaisesRegex(
                    (qrtool.CallError, qrtool.Error), message):
                qrtool.apply(b if "q" in keywords else b[0], **keywords)

    def test_an_interrupt_ends_a_long_call(self):
        a = np.random.default_rng(5).standard_normal((60000, 16, 16)).astype(np.float32)
        expected = qrtool.qr(a[:10]).R
        # A process that starts in the background may be told to ignore this signal.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
        with self.assertRaises(KeyboardInterrupt):
            for _ in range(1000):
                qrtool.qr(a)
        self.assertTrue(np.array_equal(qrtool.qr(a[:10]).R, expected))

    def test_empty_arrays_have_the_shapes_of_numpy(self):
        for shape in ((0, 3), (3, 0), (0, 0), (0, 4, 2), (2, 0, 3), (2, 3, 0)):
            q, r = qrtool.qr(np.zeros(shape))
            own_q, own_r = np.linalg.qr(np.zeros(shape))
            self.assertEqual((q.shape, r.shape), (own_q.shape, own_r.shape))
        self.assertEqual(qrtool.lstsq(np.zeros((0, 5, 2)), np.zeros((0, 5, 1))).x.shape, (0, 2, 1))


@unittest.skipIf(sys.argv[1] == "installed", "the sources are not there")
class Version(unittest.TestCase):
    def test_the_wheel_has_that_of_the_library_and_the_package(self):
        project, cmake, readme = ((pathlib.Path(sys.argv[2]) / file).read_text() for file in (
            "pyproject.toml", "CMakeLists.txt", "README.md"))
        rule = re.search("regex = '(.*)'", project)[1]
        version = re.search(rule, cmake)["value"]
        self.assertEqual(version, qrtool.__version__)
        self.assertIn(f"qrtool_{version}_amd64.deb", readme)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
