#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""HDF5 files whose structure is damaged or unusual: the tool ends, with little memory, and says
what is wrong; unusual files that are sound are read."""
import os
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

import h5py
import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../fuzz"))
from hdf5_damage import checked_parts, checksum  # noqa: E402

QRTOOL = sys.argv[1]
EXIT_NOT_FINITE = 1
EXIT_INPUT = 3
GIB = 1 << 30


def limit_memory():
    resource.setrlimit(resource.RLIMIT_AS, (GIB, GIB))


class DamagedHdf5(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="qrtool-damaged-")
        self.file = os.path.join(self.folder, "a.h5")
        self.damaged = os.path.join(self.folder, "d.h5")
        self.matrices = np.random.default_rng(3).standard_normal((3, 5, 4))

    def tearDown(self):
        shutil.rmtree(self.folder)

    def run_tool(self, *arguments):
        """Returns the exit code and what was said. The time limit finds what never ends."""
        done = subprocess.run([QRTOOL, *arguments], capture_output=True, text=True, timeout=60,
                              check=False, errors="replace", preexec_fn=limit_memory,
                              cwd=self.folder)
        return done.returncode, done.stdout + done.stderr

    def factor(self, file, *options):
        return self.run_tool("factor", file, "q.h5", "-f", "-q", "--backend", "cpu", "--threads",
                             "2", *options)

    def write_changed(self, whole, place, new):
        with open(self.damaged, "wb") as file:
            file.write(whole[:place] + new + whole[place + len(new):])

    @staticmethod
    def part_around(whole, place):
        """The begin and the end of what a checksum covers."""
        return next((begin, end) for begin, end in checked_parts(whole) if begin < place < end)

    def write_checked(self, changed, part):
        """Writes the bytes with the right checksum behind the part, its begin and its end."""
        begin, end = part
        struct.pack_into("<I", changed, end, checksum(bytes(changed[begin:end])))
        with open(self.damaged, "wb") as file:
            file.write(changed)

    def content(self):
        with open(self.file, "rb") as file:
            return file.read()

    def write_texts(self):
        """A file with attributes in a global heap, and its heap: place, size and objects."""
        with h5py.File(self.file, "w") as file:
            dataset = file.create_dataset("A", data=self.matrices)
            dataset.attrs["CLASS"] = "x" * 6000
            dataset.attrs["MATLAB_class"] = "double"
        whole = self.content()
        heap = whole.index(b"GCOL")
        size, objects = struct.unpack_from("<Q", whole, heap + 8)[0], []
        at = heap + 16
        while at + 16 <= heap + size:
            number, _, _, length = struct.unpack_from("<HHIQ", whole, at)
            objects.append((at, number, length))
            at += 16 + (length + 7) // 8 * 8 if number else length
        self.assertGreater(size, 4096)
        self.assertEqual(len(objects), 3)
        return whole, heap, objects

    def test_heaps_of_texts_beyond_4096_bytes(self):
        # The library reads 4096 bytes of a heap first, and walks over all of it for each text.
        whole, heap, objects = self.write_texts()
        sizes = (0, 1, 8, 24, 2**31, 2**40, 2**63 - 1, 2**64 - 16)
        for place in [at + 8 for at, _, _ in objects] + [heap + 8]:
            for size in sizes:
                self.write_changed(whole, place, struct.pack("<Q", size))
                for command in (("info", self.damaged), ("factor", self.damaged, "q.h5", "-fq")):
                    code, said = self.run_tool(*command)
                    self.assertIn(code, (0, EXIT_INPUT), (place, size, said))
                    self.assertNotIn("crashed", said, (place, size))
        self.assertEqual(self.factor(self.file), (0, ""))

    def test_lengths_of_texts_that_are_not_there(self):
        whole, heap, objects = self.write_texts()
        for _, number, length in objects[:2]:
            place = whole.index(struct.pack("<IQI", length, heap, number))
            self.write_changed(whole, place, struct.pack("<I", 2**30 + 5))
            code, said = self.run_tool("info", self.damaged)
            self.assertEqual(code, 0, said)
            code, said = self.factor(self.damaged)
            self.assertEqual(code, EXIT_INPUT, said)
            self.assertIn("a text of 1073741829 bytes", said)

    def test_texts_whose_places_are_too_short(self):
        # A place has 16 bytes. The library reads as many where the type of the attribute has fewer.
        whole, _, _ = self.write_texts()
        of_texts = struct.pack("<BBHI", 0x19, 1, 1, 16)
        for size in (1, 15, 16):
            for name in (b"CLASS", b"MATLAB_class"):
                place = whole.index(of_texts, whole.index(name)) + 4
                self.write_changed(whole, place, struct.pack("<I", size))
                code, said = self.factor(self.damaged)
                self.assertEqual(code, 0 if size == 16 else EXIT_INPUT, said)
                if size < 16:
                    self.assertIn("it is shorter than its texts need", said)

    def test_local_heaps_that_lead_back_to_themselves(self):
        with h5py.File(self.file, "w") as file:
            file.create_dataset("A", data=self.matrices)
        whole = bytearray(self.content())
        heap = whole.index(b"HEAP")
        data = struct.unpack_from("<Q", whole, heap + 24)[0]
        # Two free places that lead to each other, of one byte less than there are.
        places = (40, 56)
        for claimed in (88, 2**62):
            for bytes_each in (0, 16):
                changed = bytearray(whole)
                struct.pack_into("<QQ", changed, heap + 8, claimed, places[0])
                for i, place in enumerate(places):
                    struct.pack_into("<QQ", changed, data + place, places[1 - i], bytes_each)
                with open(self.damaged, "wb") as file:
                    file.write(changed)
                code, said = self.factor(self.damaged)
                self.assertEqual(code, EXIT_INPUT, said)
                self.assertIn("has a free place at byte", said)

    def test_largest_dimensions_that_lie(self):
        # The library takes the length of an index from them, and reads beyond its end.
        with h5py.File(self.file, "w", libver="latest") as file:
            file.create_dataset("A", data=self.matrices, chunks=(1, 5, 4), maxshape=(3, 5, 4))
        self.assertEqual(self.factor(self.file), (0, ""))
        whole = self.content()
        sizes = struct.pack("<QQQ", 3, 5, 4)
        place = whole.index(sizes + sizes)
        part = self.part_around(whole, place)
        for largest in (6, 1000):
            lying = struct.pack("<QQQQQQ", largest, 5, 4, largest, 5, 4)
            changed = bytearray(whole[:place] + lying + whole[place + len(lying):])
            self.write_checked(changed, part)
            code, said = self.factor(self.damaged)
            self.assertEqual(code, EXIT_INPUT, said)
            self.assertIn(f"its index has not {largest} entries", said)

    def test_shuffled_elements_larger_than_a_chunk(self):
        matrices = np.random.default_rng(4).standard_normal((60, 5, 4))
        with h5py.File(self.file, "w") as file:
            file.create_dataset("A", data=matrices, chunks=(1, 5, 4), shuffle=True)
        whole = self.content()
        place = whole.index(b"shuffle\0") + 8
        self.assertEqual(struct.unpack_from("<I", whole, place), (8,))
        # A loop over the bytes of each element would take minutes.
        self.write_changed(whole, place, struct.pack("<I", 0xffffffff))
        code, said = self.factor(self.damaged)
        # As in HDF5 the bytes stay as they are, and may then be NaN.
        self.assertIn(code, (0, EXIT_NOT_FINITE, EXIT_INPUT), said)

    def test_an_index_of_more_chunks_than_the_file_has_bytes(self):
        with h5py.File(self.file, "w", libver="latest") as file:
            file.create_dataset("A", data=self.matrices, chunks=(1, 5, 4), compression="gzip")
        whole = self.content()
        place = whole.index(b"FAHD") + 8
        part = self.part_around(whole, place)
        self.assertEqual(struct.unpack_from("<Q", whole, place), (3,))
        # HDF5 takes a bit of memory for each page of 1024 entries, before it reads any.
        for entries in (1000, 1 << 42, 1 << 46):
            changed = bytearray(whole)
            struct.pack_into("<Q", changed, place, entries)
            self.write_checked(changed, part)
            code, said = self.factor(self.damaged)
            self.assertEqual(code, EXIT_INPUT, said)
            self.assertIn(f"an index of {entries} chunks in a file of {len(whole)} bytes", said)

    def test_an_index_with_nodes_of_an_impossible_size(self):
        with h5py.File(self.file, "w", libver="latest") as file:
            file.create_dataset("A", data=self.matrices, chunks=(1, 5, 4), maxshape=(None, None, 4))
        whole = self.content()
        place = whole.index(b"BTHD") + 6
        part = self.part_around(whole, place)
        # HDF5 takes as much memory, and clears it, before it reads a node; or far more for none.
        for size in (1 << 29, 0):
            changed = bytearray(whole)
            struct.pack_into("<I", changed, place, size)
            self.write_checked(changed, part)
            code, said = self.factor(self.damaged)
            self.assertEqual(code, EXIT_INPUT, said)
            self.assertIn(f"nodes have {size} bytes in a file of {len(whole)} bytes", said)

    def test_parts_of_complex_numbers_that_lie_outside_of_them(self):
        with h5py.File(self.file, "w") as file:
            file["A"] = (self.matrices * (1 + 2j)).astype("c8")
        whole = self.content()
        # The name of a member, padded to eight bytes, precedes its place.
        place = whole.index(b"i" + 7 * b"\0") + 8
        self.assertEqual(struct.unpack_from("<I", whole, place), (4,))
        for offset in (5, 16711680):  # HDF5 reads whatever lies there
            self.write_changed(whole, place, struct.pack("<I", offset))
            code, said = self.factor(self.damaged)
            self.assertEqual(code, EXIT_INPUT, said)
            self.assertIn("parts lie outside of them; the file is damaged", said)

    def test_an_index_that_cannot_be_read_is_not_one_without_chunks(self):
        for libver, signature in (("earliest", b"TREE\1"), ("latest", b"FAHD")):
            with h5py.File(self.file, "w", libver=libver) as file:
                file.create_dataset("A", data=self.matrices, chunks=(1, 5, 4), compression="gzip")
            whole = self.content()
            self.assertEqual(self.factor(self.file), (0, ""))
            index = whole.index(signature)
            for place in range(index, index + 40):
                self.write_changed(whole, place, bytes([whole[place] ^ 0x55]))
                code, said = self.factor(self.damaged)
                if code != 0:
                    continue
                with h5py.File(self.damaged) as file, \
                        h5py.File(os.path.join(self.folder, "q.h5")) as factors:
                    np.testing.assert_allclose(factors["Q"][:] @ factors["R"][:], file["A"][:],
                                               atol=1e-14)

    def test_groups_far_below_each_other(self):
        with h5py.File(self.file, "w") as file:
            group = file
            for _ in range(3000):
                group = group.create_group("g")
            group["A"] = self.matrices
        path = "/g" * 3000 + "/A"
        self.assertEqual(self.factor(self.file), (0, ""))
        self.assertEqual(self.factor(f"{self.file}:{path}"), (0, ""))
        code, said = self.run_tool("info", self.file)
        self.assertEqual(code, 0, said)

    def test_a_group_that_holds_itself(self):
        with h5py.File(self.file, "w") as file:
            inner = file.create_group("a/b")
            inner["A"] = self.matrices
            inner["again"] = file["a"]
            inner["root"] = file["/"]
        self.assertEqual(self.factor(self.file), (0, ""))
        code, said = self.run_tool("info", self.file)
        self.assertIn("/a/b/A", said)
        self.assertEqual(self.factor(f"{self.file}:/a/b/again/b/root/a/b/A"), (0, ""))

    def test_numbers_that_begin_like_a_heap(self):
        a = np.eye(4, dtype="i8") * 3
        a.flat[:4] = [int.from_bytes(b"GCOL\1\0\0\0", "little"), 128, 5, 9999]
        with h5py.File(self.file, "w") as file:
            file["A"] = a
            file.create_dataset("chunked", data=a.astype(">i8").byteswap().view("<i8"),
                                chunks=(4, 4))
        for name in ("A", "chunked"):
            self.assertEqual(self.factor(f"{self.file}:/{name}"), (0, ""))

    def test_most_chunks_were_never_written(self):
        part = self.matrices.repeat(40, 0)
        with h5py.File(self.file, "w") as file:
            sparse = file.create_dataset("A", (50_000_000, 5, 4), "f8", chunks=(1000, 5, 4),
                                         compression="gzip")
            sparse[:120] = part
        self.assertEqual(self.factor(f"{self.file}:/A[:100]"), (0, ""))
        with h5py.File(os.path.join(self.folder, "q.h5")) as file:
            np.testing.assert_allclose(file["Q"][:] @ file["R"][:], part[:100], atol=1e-14)
        # 1.5 GiB of the rest, which is 0.
        self.assertEqual(self.factor(f"{self.file}:/A[100:10100]")[0], 0)

    def test_sizes_that_cannot_be_meant(self):
        with h5py.File(self.file, "w") as file:
            file.create_dataset("A", (1 << 40, 10, 10), "f8", chunks=(1000, 10, 10))
            file.create_dataset("tiny", (1 << 20, 1 << 6), "f8", chunks=(1, 1))[0, 0] = 1
        code, said = self.factor(f"{self.file}:/A")
        self.assertEqual(code, 6, said)
        self.assertIn("claims 800 TiB in a file of", said)
        self.assertIn("read a part", said)
        code, said = self.factor(f"{self.file}:/tiny")
        self.assertEqual(code, 6, said)
        self.assertIn("claims 67108864 chunks in a file of", said)
        self.assertEqual(self.factor(f"{self.file}:/A[7:9]")[0], 0)
        self.assertEqual(self.factor(f"{self.file}:/tiny[:100]")[0], 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
