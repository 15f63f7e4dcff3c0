# SPDX-License-Identifier: Apache-2.0
"""libqrtool.so by ctypes: its structs, its functions, and its errors as exceptions. qrtool.h says
what they mean."""
import ctypes
import itertools
import os
import pathlib
from ctypes import (POINTER, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_uint64,
                    c_void_p)

ABI = 1
OK, NOT_ALL_GOOD, BAD_CALL, BAD_INPUT, NO_DEVICE, NO_MEMORY = 0, 1, 2, 3, 4, 6
STOPPED = 8


class Error(Exception):
    """What qrtool could not do."""


class CallError(Error, ValueError):
    """An argument is wrong, or its numbers are."""


class DeviceError(Error, RuntimeError):
    """The device is not there, or has failed."""


class MemoryLimitError(Error, MemoryError):
    """The memory, or the limit that was set for it, does not suffice."""


class Stopped(Error):
    """keep_going ended the call."""


EXCEPTIONS = {BAD_CALL: CallError, BAD_INPUT: CallError, NO_DEVICE: DeviceError,
              NO_MEMORY: MemoryLimitError, STOPPED: Stopped}

KeepGoing = ctypes.CFUNCTYPE(c_int, c_void_p)
Allocate = ctypes.CFUNCTYPE(c_void_p, c_void_p, c_size_t, c_void_p)
Deallocate = ctypes.CFUNCTYPE(None, c_void_p, c_void_p, c_void_p)


class Matrices(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("type", c_int32), ("reserved", c_int32), ("count", c_int64),
                ("rows", c_int64), ("columns", c_int64), ("row_stride", c_int64),
                ("column_stride", c_int64), ("matrix_stride", c_int64)]


def place(name):
    """Fields for a qrtool_place: its data, and its strides. A struct within a struct would take
    longer to fill in."""
    return [(name, c_void_p), (f"{name}_strides", c_int64 * 3)]


class ContextOptions(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("device", c_char_p), ("memory_bytes", c_uint64),
                ("threads", c_int32), ("reserved", c_int32), ("keep_going", KeepGoing),
                ("user", c_void_p), ("allocate", Allocate), ("deallocate", Deallocate)]


class Run(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("backend", c_char_p), ("device", c_char_p),
                ("variant", c_char_p), ("arithmetic", c_char_p), ("reason", c_char_p),
                ("threads", c_int32), ("reserved", c_int32)]


class FactorOptions(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("mode", c_int32), ("sign", c_int32), ("check", c_int32),
                ("arithmetic", c_int32), ("pivoting", c_int32), ("condition", c_int32),
                ("stream", c_void_p), ("no_wait", c_int32), ("reserved", c_int32),
                ("statuses", c_void_p)]


class Factors(ctypes.Structure):
    _fields_ = [("size", c_size_t), *place("q"), *place("r"), *place("v"), *place("tau"),
                ("p", c_void_p), ("reports", c_void_p), ("report_size", c_size_t)]


class VerifyOptions(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("check", c_int32), ("criteria", c_int32), ("mixed", c_int32),
                ("reserved", c_int32), ("stream", c_void_p)]


class GivenFactors(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("q", POINTER(Matrices)), ("r", POINTER(Matrices)),
                ("v", POINTER(Matrices)), ("tau", POINTER(Matrices)), ("p", c_void_p)]


class ApplyOptions(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("product", c_int32), ("reserved", c_int32)]


class SolveOptions(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("rank_tolerance", c_double), ("ridge", c_double),
                ("intercept", c_int32), ("basic", c_int32), ("skip_missing", c_int32),
                ("least_norm", c_int32), ("stream", c_void_p)]


FACTORS_SIZE = ctypes.sizeof(Factors)  # once, as it would be asked for in each call


class Solutions(ctypes.Structure):
    _fields_ = [("size", c_size_t), *place("x"), *place("errors"), ("solutions", c_void_p),
                ("solution_size", c_size_t)]


class GenerateOptions(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("cond", c_double), ("seed", c_uint64), ("stream", c_void_p)]


class Place(ctypes.Structure):
    _fields_ = place("data")


# Fields of qrtool_report and of qrtool_solution, as a numpy.dtype takes them.
REPORT = [(name, "f8") for name in (
    "residual", "orthogonality", "lower", "residual_bar", "orthogonality_bar", "lower_bar",
    "diagonal_ratio", "condition")] + [
        (name, "i4") for name in ("status", "rank", "tries", "scale")]
SOLUTION = [(name, "f8") for name in (
    "residual_norm", "backward_error", "least_norm_error", "bar", "degrees_of_freedom", "condition",
    "scaled_condition")] + [(name, "i4") for name in ("status", "rank", "tries", "reserved")]


def places_of_library():
    """$QRTOOL_LIBRARY; beside this file, as in a wheel; or where the system looks for libraries."""
    named = os.environ.get("QRTOOL_LIBRARY")
    if named:
        return [named]
    beside = pathlib.Path(__file__).parent / f"libqrtool.so.{ABI}"
    return [*([str(beside)] if beside.exists() else []), f"libqrtool.so.{ABI}"]


def load():
    troubles = []
    for place in places_of_library():
        try:
            library = ctypes.CDLL(place)
            break
        except OSError as trouble:
            troubles.append(str(trouble))
    else:
        raise ImportError(f"libqrtool.so.{ABI} was not found: {'; '.join(troubles)}; "
                          "install qrtool, or name the library by QRTOOL_LIBRARY")
    if library.qrtool_abi() != ABI:
        raise ImportError(f"this package needs QRTOOL_ABI {ABI}, and the library has "
                          f"{library.qrtool_abi()}")
    library.qrtool_error.restype = library.qrtool_version.restype = c_char_p
    library.qrtool_status_name.restype = c_char_p
    library.qrtool_open.argtypes = [POINTER(ContextOptions), POINTER(c_void_p)]
    library.qrtool_close.argtypes = [c_void_p]
    library.qrtool_close.restype = None
    # A struct that is passed for a pointer takes less time than ctypes.byref().
    for name, types in (
            ("last_run", [Run]), ("factor", [Matrices, FactorOptions, Factors]),
            ("verify", [Matrices, GivenFactors, VerifyOptions]),
            ("apply", [GivenFactors, Matrices, ApplyOptions, Solutions]),
            ("solve", [Matrices, Matrices, Matrices, SolveOptions, Solutions])):
        getattr(library, f"qrtool_{name}").argtypes = [c_void_p, *map(POINTER, types)]
    library.qrtool_generate.argtypes = [c_void_p, c_char_p, POINTER(Matrices),
                                        POINTER(GenerateOptions), POINTER(Place)]
    library.qrtool_kind_name.restype = c_char_p
    library.qrtool_verify.argtypes += [c_void_p, c_size_t]
    library.qrtool_workspace.argtypes = [c_void_p, POINTER(Matrices), POINTER(FactorOptions),
                                         POINTER(c_uint64)]
    library.qrtool_release.argtypes = [c_void_p]
    library.qrtool_allocate.argtypes = [c_void_p, c_size_t, c_void_p, POINTER(c_void_p)]
    library.qrtool_free.argtypes = [c_void_p, c_void_p, c_void_p]
    library.qrtool_export.argtypes = [c_void_p, c_void_p, c_int32, c_int32, POINTER(c_int64),
                                      POINTER(c_int64), c_int32, POINTER(c_void_p)]
    return library


LIBRARY = load()
VERSION = LIBRARY.qrtool_version().decode()
STATUS_NAMES = tuple(LIBRARY.qrtool_status_name(status).decode() for status in range(6))
KINDS = tuple(name.decode() for name in itertools.takewhile(
    bool, map(LIBRARY.qrtool_kind_name, itertools.count())))


def error_of(code):
    """The exception for a code of this thread's last call, in the words of this package."""
    text = LIBRARY.qrtool_error().decode(errors="replace")
    return EXCEPTIONS.get(code, Error)(
        text.replace("memory_bytes of the context", "memory in open_device()"))


def watch(caught):
    """Answers keep_going: 1 until a signal, such as Ctrl-C, raises an exception here, inside of the
    try, where a suspended generator goes on; then 0, once."""
    answer = 1
    while True:
        try:
            while True:
                yield answer
                answer = 1
        except GeneratorExit:
            raise
        except BaseException as exception:  # KeyboardInterrupt is one
            caught.append(exception)
            answer = 0


class Context:
    """An open context. Where a signal stops a call, its exception comes out of the call. Work
    memory for arrays on a GPU comes from two functions, if they are given."""

    def __init__(self, device, threads=0, memory=0, allocate=None, deallocate=None):
        self.handle = c_void_p()
        self.caught = []
        answers = watch(self.caught)
        next(answers)
        self.keep_going = KeepGoing(answers.send)
        self.memory_functions = Allocate(allocate or 0), Deallocate(deallocate or 0)
        options = ContextOptions(ctypes.sizeof(ContextOptions), device.encode(), memory, threads, 0,
                                 self.keep_going, None, *self.memory_functions)
        code = LIBRARY.qrtool_open(options, self.handle)
        if code != OK:
            raise error_of(code)

    def __del__(self, close=LIBRARY.qrtool_close):  # when Python ends, LIBRARY may be gone
        close(self.handle)

    def call(self, function, *arguments):
        """Whether all matrices are good."""
        code = function(self.handle, *arguments)
        if code <= NOT_ALL_GOOD:
            return code == OK
        if code == STOPPED and self.caught:
            raise self.caught.pop()
        raise error_of(code)

    def last_run(self):
        run = Run(ctypes.sizeof(Run))
        self.call(LIBRARY.qrtool_last_run, run)
        # The texts are those of this thread, so that another one does not change them meanwhile.
        texts = {name: getattr(run, name).decode(errors="replace") for name in
                 ("backend", "device", "variant", "arithmetic", "reason")}
        return {**texts, "threads": run.threads}
