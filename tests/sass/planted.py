#!/usr/bin/env python3
"""Compiles planted.cu with NVRTC and says what is found in each of its kernels.

    planted.py PYTHON    a Python that may have nvidia-cuda-nvdisasm

Prints "ok - WHAT", "not ok - WHAT" or "skipped - WHAT"."""

import ctypes
import pathlib
import re
import sys
import tempfile

from kernel_table import Function
from machine_code import find_disassembler, read_cubin

HERE = pathlib.Path(__file__).resolve().parent
LIBRARIES = ["libnvrtc.so.13", "libnvrtc.so.12", "/usr/local/cuda/lib64/libnvrtc.so"]


def find_nvrtc():
    for name in LIBRARIES:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def compile_planted(nvrtc):
    """(machine code, the compiler's messages)."""
    program = ctypes.c_void_p()

    def call(function, *arguments):
        if getattr(nvrtc, function)(*arguments):
            sys.exit(f"{function} failed: {text('ProgramLog')}" if program else f"{function} failed")

    def text(what):
        size = ctypes.c_size_t()
        getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        getattr(nvrtc, f"nvrtcGet{what}")(program, buffer)
        return buffer.raw

    source = (HERE / "planted.cu").read_bytes()
    call("nvrtcCreateProgram", ctypes.byref(program), source, b"planted.cu", 0, None, None)
    options = [b"--gpu-architecture=sm_90a", b"--std=c++17", b"--ptxas-options=-v"]
    call("nvrtcCompileProgram", program, len(options), (ctypes.c_char_p * len(options))(*options))
    return text("CUBIN"), text("ProgramLog").decode()


def main():
    disassembler, nvrtc = find_disassembler(sys.argv[1]), find_nvrtc()
    if not disassembler or not nvrtc:
        print(f"skipped - planted kernels: there is no {'NVRTC' if disassembler else 'nvdisasm'}")
        return 0
    cubin, log = compile_planted(nvrtc)
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        _, codes = read_cubin(disassembler, file.name)
    failed = False

    def check(good, what):
        nonlocal failed
        failed = failed or not good
        print(f"{'ok' if good else 'not ok'} - {what}")

    def faults(name):
        part = log.partition(f"'{name}'")[2]
        spilled = sum(int(number) for number in re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", part).groups())
        return Function("planted", name, 0, 0, spilled, 0, codes[name]).faults()

    for name, word in [("narrow_pairs", "4 instructions of 4 bytes or less"), ("narrow_single", "1 instructions of 4 bytes"),
                       ("spills", "spills")]:
        check(any(word in fault for fault in faults(name)), f"planted {name} is found")
    check(faults("sound") == [], "a kernel with f32 sums in 4 bytes and bf16 in 16 passes")
    check(codes["sound"].stores[16] > 0 and codes["sound"].stores[4] > 0, "its stores are counted by width")
    check(any("div" in path for path in codes["divides"].slow_paths), "the slow path of a division is counted")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
