# SPDX-License-Identifier: Apache-2.0
"""hdf5_samples.py: small HDF5 files of every kind of storage, which the fuzzing damages."""
import os
import subprocess

import h5py
import numpy as np


def _matrices(shape, dtype="f4", seed=0):
    values = np.random.default_rng(seed).standard_normal(shape)
    kind = np.dtype(dtype).kind
    return (values * 50).astype(dtype) if kind in "iu" else values.astype(dtype)


def _low_level(path, array, libver, set_up, name=b"A"):
    """A dataset with properties that h5py's own interface does not offer."""
    with h5py.File(path, "w", libver=libver) as file:
        creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        set_up(creation)
        dataset = h5py.h5d.create(file.id, name, h5py.h5t.py_create(array.dtype),
                                  h5py.h5s.create_simple(array.shape), creation)
        dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, np.ascontiguousarray(array))


def _compact(creation):
    creation.set_layout(h5py.h5d.COMPACT)


def _implicit(creation):
    creation.set_chunk((2, 6, 4))
    creation.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)


def _sparse(path, libver, fill_time):
    with h5py.File(path, "w", libver=libver) as file:
        creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        creation.set_chunk((1, 6, 4))
        creation.set_fill_time(fill_time)
        dataset = h5py.h5d.create(file.id, b"A", h5py.h5t.IEEE_F32LE,
                                  h5py.h5s.create_simple((4, 6, 4)), creation)
        h5py.Dataset(dataset)[0:3] = _matrices((3, 6, 4))


def _groups(path, libver):
    with h5py.File(path, "w", libver=libver) as file:
        for i in range(12):
            group = file.create_group(f"group{i}")
            group.attrs["number"] = i
        file["group3"].create_dataset("A", data=_matrices((3, 6, 4)))
        file["group3/A"].attrs["MATLAB_class"] = np.bytes_(b"single")
        for i in range(12):
            file["group3/A"].attrs[f"note{i}"] = "text " * i
        file["soft"] = h5py.SoftLink("/group3/A")
    return "/group3/A"


def write_samples(folder, qrtool):
    """Writes all samples. Returns a list of (path, the path of the dataset in it)."""
    samples = []

    def add(name, array, libver, path_in_file="/A", **options):
        path = os.path.join(folder, name + ".h5")
        with h5py.File(path, "w", libver=libver, **options.pop("file", {})) as file:
            file.create_dataset("A", data=array, **options)
        samples.append((path, path_in_file))
        return path

    def add_low_level(name, array, libver, set_up):
        path = os.path.join(folder, name + ".h5")
        _low_level(path, array, libver, set_up)
        samples.append((path, "/A"))

    a = _matrices((5, 6, 4))
    for libver in ("earliest", "latest"):
        chunks = (2, 6, 4)
        add(f"contiguous-{libver}", a, libver)
        add(f"double-{libver}", a.astype("f8"), libver)
        add(f"chunked-{libver}", a, libver, chunks=chunks)
        add(f"single-chunk-{libver}", a, libver, chunks=a.shape)
        add(f"growing-{libver}", a, libver, chunks=chunks, maxshape=(None, 6, 4))
        add(f"growing-twice-{libver}", a, libver, chunks=(2, 3, 4), maxshape=(None, None, 4))
        add(f"parts-of-matrices-{libver}", a, libver, chunks=(3, 4, 3))
        add(f"gzip-{libver}", a, libver, chunks=chunks, compression="gzip", shuffle=True)
        add(f"gzip-fletcher32-{libver}", a, libver, chunks=chunks, compression="gzip", shuffle=True,
            fletcher32=True)
        add(f"lzf-{libver}", np.round(a, 1), libver, chunks=chunks, compression="lzf", shuffle=True)
        add(f"gzip-parts-{libver}", a.astype("f8"), libver, chunks=(3, 4, 3), compression="gzip")
        add(f"shuffle-{libver}", a, libver, chunks=chunks, shuffle=True)
        add(f"fletcher32-{libver}", a, libver, chunks=chunks, fletcher32=True)
        add(f"big-endian-{libver}", a.astype(">f8"), libver)
        add(f"big-endian-chunked-{libver}", a.astype(">f4"), libver, chunks=chunks, fletcher32=True)
        add(f"int16-{libver}", _matrices((5, 6, 4), "i2"), libver)
        add(f"half-{libver}", a.astype("f2"), libver, chunks=chunks, compression="gzip")
        add(f"complex-{libver}", (a * (1 + 2j)).astype("c8"), libver)
        add(f"complex-gzip-{libver}", a * (1 + 2j), libver, chunks=chunks, compression="gzip")
        add(f"scaled-{libver}", _matrices((5, 6, 4), "i4"), libver, chunks=chunks, scaleoffset=0)
        add(f"userblock-{libver}", a, libver, file={"userblock_size": 512})
        add_low_level(f"compact-{libver}", a[:2], libver, _compact)
        add_low_level(f"implicit-{libver}", a, libver, _implicit)
        for name, fill_time in (("sparse", h5py.h5d.FILL_TIME_ALLOC),
                                ("never-written", h5py.h5d.FILL_TIME_NEVER)):
            path = os.path.join(folder, f"{name}-{libver}.h5")
            _sparse(path, libver, fill_time)
            samples.append((path, "/A"))
        with h5py.File(os.path.join(folder, f"neighbours-{libver}.h5"), "w", libver=libver) as file:
            for i, name in enumerate("ABC"):
                file.create_dataset(name, data=_matrices((3, 5, 4), seed=i))
            samples.append((file.filename, "/B"))
        path = os.path.join(folder, f"groups-{libver}.h5")
        samples.append((path, _groups(path, libver)))
    own = os.path.join(folder, "own.h5")
    subprocess.run([qrtool, "factor", samples[0][0], own, "-q"], check=True)
    samples.append((own, "/Q"))
    return samples


def write_factor_samples(folder, qrtool):
    """Writes pairs of an input and an output of ours. Returns a list of such paths."""
    pairs = []
    a = os.path.join(folder, "verify-a.h5")
    with h5py.File(a, "w") as file:
        file["A"] = _matrices((5, 6, 4))
    for name, options in (("reduced", []), ("complete", ["--mode", "complete"]),
                          ("raw", ["--mode", "raw"]), ("r", ["--mode", "r"]),
                          ("double", ["--precision", "double"])):
        path = os.path.join(folder, f"verify-{name}.h5")
        subprocess.run([qrtool, "factor", a, path, "-q", *options], check=True)
        pairs.append((a, path))
    foreign = os.path.join(folder, "verify-foreign.h5")
    reduced = os.path.join(folder, "verify-reduced.h5")
    with h5py.File(reduced) as ours, h5py.File(foreign, "w") as file:
        file.create_dataset("Q", data=ours["Q"][:])
        file.create_dataset("R", data=ours["R"][:], chunks=(2, 4, 4), compression="gzip",
                            shuffle=True)
    pairs.append((a, foreign))
    return pairs
