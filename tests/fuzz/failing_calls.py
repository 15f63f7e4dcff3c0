# SPDX-License-Identifier: Apache-2.0
"""failing_calls.py: makes single calls of the system, and single allocations, fail under the
tool."""
import errno
import os
import re

import h5py
import numpy as np

# Before the tool's main begins, the loader and the libraries allocate; what they do without memory
# is theirs. The first allocation that the tool answers for comes after that many.
_BEFORE_MAIN = 1310
# Where an allocation fails, HDF5 1.10 writes to a list that it has just freed (H5FL_blk_malloc).
# The C library says so when it finds it, and ends the process; the tool names the file after that.
_OF_C_LIBRARY = re.compile(r"\A(corrupted |malloc\(\): |free\(\): |double free ).*\n")
_CALLS = (("pwrite", errno.ENOSPC), ("pwrite", errno.EIO), ("write", errno.ENOSPC),
          ("ftruncate", errno.EIO),
          ("fsync", errno.EIO), ("rename", errno.EIO), ("fallocate", errno.ENOSPC),
          ("open", errno.EMFILE), ("fstat", errno.EIO), ("read", errno.EIO), ("pread", errno.EIO),
          ("pread", errno.EINTR))


def _commands(fuzz):
    """The commands, each with the files that it writes as one set."""
    matrices = np.random.default_rng(1).standard_normal((3, 6, 4))
    a, gzip, csv, q = (os.path.join(fuzz.folder, name)
                       for name in ("fa.h5", "fz.h5", "fa.csv", "fq.h5"))
    with h5py.File(a, "w") as file:
        file["A"] = matrices
    with h5py.File(gzip, "w") as file:
        file.create_dataset("A", data=matrices, chunks=(2, 6, 4), compression="gzip", shuffle=True)
    np.savetxt(csv, matrices[0], delimiter=",")
    assert fuzz.run("factor", a, q, "-q")[0] == 0
    usual = ("-q", "--threads", "1", "--backend", "cpu")
    text = [f"c.{name}.csv" for name in ("Q", "R", "report")]
    return [(("factor", a, "c.h5", *usual), ["c.h5"]), (("factor", gzip, "c.h5", *usual), ["c.h5"]),
            (("factor", csv, "c.csv", *usual), text), (("verify", a, q, "--threads", "1"), []),
            (("factor", a, "c.h5", *usual, "--force"), ["c.h5"])]


def _run_one(fuzz, arguments, written, call, error, number, sticky):
    """Returns whether the call failed, that is, whether there are so many calls."""
    log = os.path.join(fuzz.work, "log")
    for name in written:
        path = os.path.join(fuzz.work, name)
        if "--force" in arguments:
            with open(path, "wb") as file:
                file.write(b"old")
        elif os.path.exists(path):
            os.remove(path)
    result = fuzz.run(*arguments, LD_PRELOAD=fuzz.options.fail_nth, QRTOOL_FAIL_CALL=call,
                      QRTOOL_FAIL_NTH=str(number), QRTOOL_FAIL_ERRNO=str(error),
                      QRTOOL_FAIL_LOG=log,
                      QRTOOL_FAIL_STICKY=str(int(sticky)))
    if call == "malloc" and result[0] == 6:
        result = (*result[:2], _OF_C_LIBRARY.sub("", result[2], count=1))
    what = f"{call} {number}{' and all after it' if sticky else ''} of {' '.join(arguments)}"
    failed = os.path.exists(log)
    if failed:
        os.remove(log)
    fuzz.ended_well("calls", result, what, [])
    code = result[0]
    contents = [_content(fuzz, name) for name in written]
    are_new = [content not in (None, b"old") for content in contents]
    # Where only a directory could not be synced, or the summary could not be printed, all are
    # there.
    is_whole = all(are_new) if code == 0 else not any(are_new) or all(are_new)
    if written and not is_whole:
        fuzz.fail(f"exit {code}, and new are {are_new}", what, [])
    if code == 0 and written and contents != fuzz.expected.setdefault(arguments[1:3], contents):
        fuzz.fail("exit 0 with another output", what, [])
    if call == "malloc" and failed and code not in (0, 6):
        fuzz.fail(f"no memory: exit {code} {result[2][:200]!r}", what, [])
    return failed


def _content(fuzz, name):
    """The bytes of a file; of a complete HDF5 file the factors, as the name of the processor, which
    is an attribute, may be unknown without memory."""
    path = os.path.join(fuzz.work, name)
    if not os.path.exists(path):
        return None
    with open(path, "rb") as file:
        content = file.read()
    if not content.startswith(b"\x89HDF"):
        return content
    with h5py.File(path) as file:
        return file["Q"][()].tobytes() + file["R"][()].tobytes()


def run(fuzz, count):
    """Makes `count` calls fail, shared between all commands and kinds of calls. Of several
    processes each takes other calls."""
    part, parts = (int(number) for number in fuzz.options.part.split("/"))
    fuzz.expected = {}
    commands = _commands(fuzz)
    for arguments, written in commands:
        assert _run_one(fuzz, arguments, written, "none", 0, 1, False) is False
    left = count // 3
    for arguments, written in commands:
        for call, error in _CALLS:
            # A call that is always interrupted is always made again.
            for sticky in (False,) if error == errno.EINTR else (False, True):
                number = 1 + part
                while left > 0 and _run_one(fuzz, arguments, written, call, error, number, sticky):
                    number += parts
                    left -= 1
    shares = (count - count // 3) // len(commands)
    for arguments, written in commands:
        most = _BEFORE_MAIN
        while _run_one(fuzz, arguments, written, "malloc", errno.ENOMEM, most, False):
            most += 400
        for i in range(shares):
            number = _BEFORE_MAIN + (most - _BEFORE_MAIN) * (i * parts + part) // (shares * parts)
            _run_one(fuzz, arguments, written, "malloc", errno.ENOMEM, number, i % 4 == 0)
