#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""short_pocl.py ROOT FOLDER: lists the OpenCL drivers of /etc/OpenCL/vendors in FOLDER/vendors,
PoCL with a shorter header and a shorter library of built-in functions. PoCL reads the 17,500 lines
of its header for every program, twice, and the 10 MB of its library in every process that builds
one. The shorter ones have every form of each function whose name stands in the sources of gpu,
kernels, or tests of gpu, the library without vectors of 3 numbers, which no kernel has: a
run that builds three small programs takes 0.31 s of processor time in place of 0.56.

PoCL looks for its files beside its library, so that links stand for all others. Where its files lie
elsewhere, it is listed as it is."""
import ctypes
import pathlib
import re
import sys

VENDORS = pathlib.Path("/etc/OpenCL/vendors")
HEADER = "include/opencl-c.h"
BUILT_IN = "kernel-x86_64-pc-linux-gnu-{}.bc"
UNUSED_VECTORS = re.compile("Dv3_")
INTERNAL_LINKAGE = 8  # LLVMInternalLinkage
LIBRARIES = sorted(pathlib.Path("/usr/lib").glob("*-linux-gnu/libpocl.so.2"))


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def link(path, target):
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_symlink():
        path.symlink_to(target)


def shorter(header, words):
    """Returns a header's directives, and its declarations of functions named in `words`."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", header, flags=re.S).replace("\\\n", " ")
    kept, declaration = [], ""
    for line in text.splitlines():
        if line.lstrip().startswith("#"):
            kept.append(line)
            continue
        declaration += f" {line.strip()}"
        if ";" not in line:
            continue
        plain = re.sub(r"__attribute__\s*\(\(.*?\)\)", "", declaration)
        name = re.search(r"(\w+)\s*\(", plain)
        if name is None or name[1] in words:
            kept.append(declaration.strip())
        declaration = ""
    return "\n".join(kept) + "\n"


class Llvm:
    """What is used of the C interface of the LLVM that PoCL uses."""

    def __init__(self, library):
        name = re.search(rb"libLLVM-\d+\.so\.\d+", library.read_bytes())[0].decode()
        self.library = ctypes.CDLL(name)

    def call(self, function, *arguments, result=ctypes.c_void_p):
        called = getattr(self.library, f"LLVM{function}")
        called.restype = result
        return called(*arguments)

    def read(self, path):
        context, message = ctypes.c_void_p(self.call("ContextCreate")), ctypes.c_char_p()
        data, module = ctypes.c_void_p(), ctypes.c_void_p()
        if self.call("CreateMemoryBufferWithContentsOfFile", str(path).encode(), ctypes.byref(data),
                     ctypes.byref(message), result=ctypes.c_int) != 0 or \
                self.call("ParseBitcodeInContext2", context, data, ctypes.byref(module),
                          result=ctypes.c_int) != 0:
            raise OSError(f"LLVM does not read {path}")
        return module

    def functions(self, module):
        """Returns (function, its name) for each function that the module defines."""
        found, length = [], ctypes.c_size_t()
        function = self.call("GetFirstFunction", module)
        while function is not None:
            handle = ctypes.c_void_p(function)
            if not self.call("IsDeclaration", handle, result=ctypes.c_int):
                name = self.call("GetValueName2", handle, ctypes.byref(length),
                                 result=ctypes.c_char_p)
                found.append((handle, name.decode()))
            function = self.call("GetNextFunction", handle)
        return found

    def remove_others(self, module, is_kept):
        """Removes the functions that neither is_kept(name) nor those kept call."""
        linkages = {}
        for function, name in self.functions(module):
            if not is_kept(name):
                linkages[name] = self.call("GetLinkage", function, result=ctypes.c_int)
                self.call("SetLinkage", function, INTERNAL_LINKAGE, result=None)
        options = ctypes.c_void_p(self.call("CreatePassBuilderOptions"))
        if self.call("RunPasses", module, b"globaldce", None, options) is not None:
            raise OSError("LLVM does not remove functions")
        for function, name in self.functions(module):
            if name in linkages:
                self.call("SetLinkage", function, linkages[name], result=None)


def shorten_built_in(llvm, source, target, words):
    """Writes the library `source` with the functions named in `words`, unless it is there."""
    def is_kept(name):
        mangled = re.match(r"_Z(\d+)", name)
        if mangled is None:
            return True
        plain = name[mangled.end():mangled.end() + int(mangled[1])].removeprefix("_cl_")
        return plain in words and not UNUSED_VECTORS.search(name)

    kept = target.with_suffix(".words")
    text = f"{source.stat().st_mtime_ns} " + " ".join(sorted(words)) + "\n"
    if target.is_file() and not target.is_symlink() and kept.is_file() and \
            kept.read_text(encoding="utf-8") == text:
        return
    target.unlink(missing_ok=True)
    module = llvm.read(source)
    llvm.remove_others(module, is_kept)
    if llvm.call("WriteBitcodeToFile", module, str(target).encode(), result=ctypes.c_int) != 0:
        raise OSError(f"LLVM does not write {target}")
    write(kept, text)


def built_in_of_this_processor(files):
    """Returns PoCL's library for this processor, or None where it is one of the older ones."""
    flags = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
    for flag, name in (("avx512f", "avx512"), ("avx2", "avx2")):
        path = files / BUILT_IN.format(name)
        if flag in flags and path.is_file():
            return path
    return None


def make_short_pocl(root, folder, library):
    files = library.parents[2] / "share/pocl"
    own = folder / "usr/share/pocl"
    built_in = built_in_of_this_processor(files)
    for path in [*files.glob("*.bc"), *files.glob("include/*")]:
        if path not in (files / HEADER, built_in):
            link(own / path.relative_to(files), path)
    words = set()
    for layer in ("gpu", "tests/gpu", "tests/support"):
        for path in (root / layer).rglob("*.*"):
            if path.suffix in (".cl", ".clh", ".cpp", ".hpp"):
                words |= set(re.findall(r"\w+", path.read_text(encoding="utf-8")))
    write(own / HEADER, shorter((files / HEADER).read_text(encoding="utf-8"), words))
    if built_in is not None:
        shorten_built_in(Llvm(library), built_in, own / built_in.name, words)
    own_library = folder / "usr/lib" / library.parent.name / library.name
    link(own_library, library)
    link(own_library.parent / "pocl", library.parent / "pocl")
    return own_library


def main():
    root, folder = map(pathlib.Path, sys.argv[1:])
    for vendor in VENDORS.glob("*.icd"):
        driver = vendor.read_text(encoding="utf-8")
        if "libpocl" in driver and len(LIBRARIES) == 1 and \
                (LIBRARIES[0].parents[2] / "share/pocl" / HEADER).is_file():
            driver = f"{make_short_pocl(root, folder, LIBRARIES[0])}\n"
        write(folder / "vendors" / vendor.name, driver)


if __name__ == "__main__":
    main()
