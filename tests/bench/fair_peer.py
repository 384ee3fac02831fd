"""Makes a comparison with PyTorch on a CPU fair: PyTorch gets its fast paths and an idle machine.

MKL, inside PyTorch, takes slower kernels on CPUs that are not Intel's. tune() switches that test off for this process; on
Intel's CPUs it does nothing. ENVIRONMENT asks malloc for huge pages, if the system gives them on request.
"""
import argparse
import ctypes
import json
import mmap
import os
import pathlib
import statistics
import subprocess
import sys
import time

ENVIRONMENT = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
HUGE_PAGES = pathlib.Path("/sys/kernel/mm/transparent_hugepage/enabled")


def run(command, **environment):
    """Its standard output; ends this program with what it printed where it fails."""
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, env={**os.environ, **environment})
    if result.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{result.stdout}{result.stderr}")
    return result.stdout


def huge_pages():
    """For a table's heading: whether ENVIRONMENT gives the peer huge pages here."""
    if not HUGE_PAGES.exists() or "[never]" in HUGE_PAGES.read_text():
        return "without huge pages (the system gives none)"
    return "with huge pages"


def tune():
    """Makes MKL's test for an Intel CPU succeed. Call it after `import torch` and before the first matmul. Returns what it
    did, for a table's heading."""
    import torch
    if "GenuineIntel" in pathlib.Path("/proc/cpuinfo").read_text():
        return "MKL as it is (an Intel CPU)"
    if not torch.backends.mkl.is_available():
        return "PyTorch without MKL"
    library = ctypes.CDLL(str(pathlib.Path(torch.__file__).parent / "lib/libtorch_cpu.so"))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    yes = b"\xb8\x01\x00\x00\x00\xc3"  # mov eax, 1; ret
    for name in ("mkl_serv_intel_cpu_true", "mkl_serv_intel_cpu"):
        if not hasattr(library, name):
            return f"MKL with its slow path: PyTorch {torch.__version__} shows no {name}"
        address = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
        page = address // mmap.PAGESIZE * mmap.PAGESIZE
        length = address + len(yes) - page
        if libc.mprotect(page, length, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC):
            return f"MKL with its slow path: its code cannot be changed (errno {ctypes.get_errno()})"
        ctypes.memmove(address, yes, len(yes))
        libc.mprotect(page, length, mmap.PROT_READ | mmap.PROT_EXEC)
    return "MKL's fast path (its test for an Intel CPU is switched off)"


def busy_share(seconds=2.0):
    """The share of the time of all CPUs that other programs took during some seconds, from /proc/stat."""
    def read():
        fields = [int(x) for x in pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:]]
        return sum(fields[:8]), fields[3] + fields[4]
    total, idle = read()
    time.sleep(seconds)
    total_after, idle_after = read()
    return 1 - (idle_after - idle) / max(total_after - total, 1)


def require_quiet(busy_is_fine):
    """Ends the program with code 1 if others use more than 5 % of the machine, unless the caller allows that.
    Returns the sentence for a table's heading."""
    share = busy_share()
    if share <= 0.05:
        return f"machine idle before the first round ({share:.0%} in use)"
    if not busy_is_fine:
        sys.exit(f"other programs use {share:.0%} of this machine, so speeds would say nothing: stop them, or give --busy to "
                 "measure nevertheless (the table will say so)")
    return f"BUSY MACHINE: {share:.0%} in use by others before the first round"


def parser_of(text):
    """The arguments that every benchmark has."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="Python with PyTorch 2.5 or newer")
    parser.add_argument("--build", default="build/release", help="build folder")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a key of mulligan's configuration, for all its runs")
    parser.add_argument("--busy", action="store_true", help="measure although other programs run")
    return parser


def settings(options, values):
    """The words of a command that set `values`, then what --set of the benchmark asks for."""
    return [part for setting in (*(f"{key}={value}" for key, value in values.items()), *options.set) for part in ("--set", setting)]


def steps_rate(directory):
    """Tokens per second of a training run: the median over the steps after the first, from its metrics.jsonl."""
    rows = [json.loads(line) for line in (pathlib.Path(directory) / "metrics.jsonl").read_text().splitlines()]
    return statistics.median(row["tokens_per_second"] for row in rows if "tokens_per_second" in row and row.get("step", 0) > 1)


def spread(values):
    """'median (least to most)' of some rates."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    median = ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
    return median, f"{median:,.0f} ({ordered[0]:,.0f} to {ordered[-1]:,.0f})"
