# SPDX-License-Identifier: Apache-2.0
"""h5py_reader.py: an independent reader. It runs in a process of its own, since h5py may crash
where qrtool must not.

Each line of the input is a file, a dataset and a part of it, such as [1:], separated by tabs. The
answer is one pickle for each: the numbers widened, or None where h5py refuses them."""
import os
import pickle
import subprocess
import sys


def _serve():
    import h5py
    import numpy as np

    from widened import widened

    for line in sys.stdin.buffer:
        path, dataset, part = line.rstrip(b"\n").split(b"\t")
        try:
            with h5py.File(path) as file:
                values = file[dataset]
                chosen = eval(b"np.s_" + part)
                numbers = np.broadcast_to(0, values.shape)[chosen].size  # which takes no memory
                too_large = numbers * max(values.dtype.itemsize, 8) > 1 << 27
                answer = None if too_large else widened(values[chosen])
        except Exception:  # h5py raises what the damage leads to
            answer = None
        pickle.dump(answer, sys.stdout.buffer)
        sys.stdout.buffer.flush()


class IndependentReader:
    def __init__(self):
        self._process = None

    def read(self, path, dataset, part=b"[()]"):
        """The numbers of a dataset, whose name is bytes, or of a part of it; None where h5py
        refuses them or crashes."""
        # The file before this one may be what a process crashes on: a second one does without it.
        answer = self._read(path, dataset, part)
        return self._read(path, dataset,
                          part) if answer is None and self._process is None else answer

    def _read(self, path, dataset, part):
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE,
                                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            self._process.stdin.write(os.fsencode(path) + b"\t" + dataset + b"\t" + part + b"\n")
            self._process.stdin.flush()
            return pickle.load(self._process.stdout)
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            self.close()
            return None

    def close(self):
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


if __name__ == "__main__":
    _serve()
