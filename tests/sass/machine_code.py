"""What the machine code (SASS) of a CUDA function does: widths of global loads and stores, local memory, slow paths.

Reads the JSON of nvdisasm, NVIDIA's disassembler (CUDA toolkit, or nvidia-cuda-nvdisasm from PyPI)."""

import collections
import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess

# What leaves two 16-bit numbers, or one, in a register.
HALVES = ("F2FP.", "F2F.BF16", "F2F.F16", "PRMT", "HADD2", "HMUL2", "HFMA2")


def find_disassembler(python):
    """MULLIGAN_NVDISASM, the path, the toolkit, or the packages of the interpreter `python`; None: there is none."""
    candidates = [os.environ.get("MULLIGAN_NVDISASM"), shutil.which("nvdisasm"), "/usr/local/cuda/bin/nvdisasm"]
    query = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
    seen = subprocess.run([python, "-c", query], capture_output=True, text=True, check=False)
    packages = pathlib.Path(seen.stdout.strip() or ".")
    candidates += sorted(packages.glob("nvidia/*/bin/nvdisasm"), reverse=True)
    return next((str(one) for one in candidates if one and os.access(one, os.X_OK)), None)


@dataclasses.dataclass
class MachineCode:
    instructions: int = 0
    loads: collections.Counter = dataclasses.field(default_factory=collections.Counter)  # by bytes
    stores: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    narrow_halves: int = 0  # stores of 4 bytes or less that hold 16-bit numbers
    local: int = 0  # accesses of local memory: spilled registers and arrays
    slow_paths: collections.Counter = dataclasses.field(default_factory=collections.Counter)  # calls, by name
    products: collections.Counter = dataclasses.field(default_factory=collections.Counter)  # matrix unit, copy engine


def width(opcode):
    """Bytes that an access moves."""
    for part in opcode.split(".")[1:]:
        if part in ("128", "64", "256"):
            return int(part) // 8
        if part in ("U8", "S8"):
            return 1
        if part in ("U16", "S16"):
            return 2
    return 4


def writes(instruction, register):
    """Whether `register` is what the instruction leaves, or the second of a pair that it leaves."""
    first = instruction.get("operands", "").split(",")[0]
    return first == register


def holds_halves(before, register):
    """Whether the last instruction of `before` that wrote `register` made 16-bit numbers; copies are followed."""
    for instruction in reversed(before):
        if not writes(instruction, register):
            continue
        opcode = instruction["opcode"]
        if opcode == "MOV" or opcode.startswith("IMAD.MOV"):
            register = instruction["operands"].split(",")[-1]
            continue
        return opcode.startswith(HALVES)
    return False


def read_function(instructions):
    code = MachineCode()
    for number, instruction in enumerate(instructions):
        opcode = instruction["opcode"]
        if opcode == "NOP":
            continue
        code.instructions += 1
        kind = opcode.split(".")[0]
        if kind == "LDG":
            code.loads[width(opcode)] += 1
        elif kind == "STG":
            bytes_ = width(opcode)
            code.stores[bytes_] += 1
            data = instruction["operands"].split(",")[-1]
            if bytes_ <= 2 or (bytes_ == 4 and holds_halves(instructions[:number], data)):
                code.narrow_halves += 1
        elif kind in ("LDL", "STL"):
            code.local += 1
        elif kind in ("HGMMA", "HMMA", "UTMALDG", "UTMASTG", "LDGSTS", "UTCHMMA", "UTCOMMA"):
            code.products[kind] += 1
        elif kind == "CALL":
            name = re.search(r"__cuda_sm\d+x?_(\w+)", instruction["operands"])
            code.slow_paths[name[1] if name else instruction["operands"]] += 1
    return code


def read_cubin(disassembler, path):
    """(tool version, {symbol: MachineCode})."""
    output = subprocess.run([disassembler, "-json", str(path)], capture_output=True, text=True, check=True).stdout
    facts, functions = json.loads(output)
    version = re.search(r"V[\d.]+", facts.get(".note.nv.tkinfo", {}).get("tki_toolVersion", ""))
    return (version[0] if version else "", {f["function-name"]: read_function(f["sass-instructions"]) for f in functions})
