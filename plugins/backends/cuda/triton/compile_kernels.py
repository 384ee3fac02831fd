#!/usr/bin/env python3
"""Compiles Triton kernels ahead of time, without a GPU, into files that a run can name in [[backend.kernels]].

    compile_kernels.py SOURCE.py OUT_DIRECTORY [--set NAME=VALUE ...] [--architecture 90] [--ptx-version 84]

SOURCE.py has a function kernels(**settings), which --set calls with strings; it returns one dictionary per kernel:
    function    the @triton.jit function; a parameter is called like the argument or attribute that it takes
    kernel      name of the kernel that it replaces; the function's name where it is left out
    types       parameter -> "*bf16", "*fp32", "*i32", ... for arguments, "fp32", "i32", "i64" for attributes
    extents     parameter -> (type, "ARGUMENT.shape[AXIS]" or "ARGUMENT.size", known divisor or 1)
    constants   tl.constexpr parameter -> value
    when        attribute or extent -> the only value for which the code holds (because a constant was made of it)
    aligned     bytes to which every argument's address is aligned; 16 where it is left out
    grid        one to three extents, divided by a number and rounded up where that follows a "/", or numbers
    options     Triton's options, such as num_warps

For each kernel KERNEL.ptx and KERNEL.json are written: Triton's own metadata with a member "mulligan" of what a launch
needs besides (docs/triton.md).
"""

import argparse
import importlib.util
import json
import os
import pathlib
import sys

os.environ.setdefault("TRITON_DISABLE_LINE_INFO", "1")  # no paths of this machine in the files

import triton  # noqa: E402
from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.compiler import ASTSource  # noqa: E402


def load(path):
    spec = importlib.util.spec_from_file_location(pathlib.Path(path).stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def describe(kernel):
    """The parameters that stay in the compiled function, in its order."""
    parameters = []
    for name in kernel["function"].arg_names:
        if name in kernel.get("constants", {}):
            continue
        if name in kernel.get("extents", {}):
            dtype, extent, divisor = kernel["extents"][name]
            parameters.append({"name": name, "type": dtype, "extent": extent, "divisible_by": divisor})
        elif name in kernel["types"]:
            dtype = kernel["types"][name]
            aligned = kernel.get("aligned", 16) if dtype.startswith("*") else 1
            parameters.append({"name": name, "type": dtype, "divisible_by": aligned})
        else:
            sys.exit(f"{kernel['function'].__name__}: its parameter {name} has no entry in types, extents or constants")
    return parameters


def compile_kernel(kernel, architecture, ptx_version):
    function = kernel["function"]
    parameters = describe(kernel)
    by_name = {parameter["name"]: parameter for parameter in parameters}
    signature = {name: by_name[name]["type"] if name in by_name else "constexpr" for name in function.arg_names}
    # Triton knows one divisor, 16.
    hints = {
        (index,): [["tt.divisibility", 16]]
        for index, name in enumerate(function.arg_names)
        if name in by_name and by_name[name]["divisible_by"] % 16 == 0
    }
    source = ASTSource(function, signature=signature, constexprs=kernel.get("constants", {}), attrs=hints)
    options = {"ptx_version": ptx_version, **kernel.get("options", {})}
    compiled = triton.compile(source, target=GPUTarget("cuda", architecture, 32), options=options)
    metadata = dict(compiled.metadata._asdict())
    metadata["target"] = {"backend": "cuda", "arch": architecture, "warp_size": 32}
    metadata.pop("extern_libs", None)  # a path of this machine; linked in already
    metadata["mulligan"] = {
        "kernel": kernel.get("kernel", function.__name__),
        "parameters": parameters,
        "when": kernel.get("when", {}),
        "grid": kernel["grid"],
    }
    return compiled.asm, metadata


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--architecture", type=int, default=90, help="compute capability: 90 for an H100 (default)")
    parser.add_argument("--ptx-version", type=int, default=84, help="84 (default) is what CUDA 12.4 understands")
    arguments = parser.parse_args()
    settings = dict(setting.split("=", 1) for setting in arguments.set)
    arguments.directory.mkdir(parents=True, exist_ok=True)
    for kernel in load(arguments.source).kernels(**settings):
        code, metadata = compile_kernel(kernel, arguments.architecture, arguments.ptx_version)
        stem = arguments.directory / metadata["mulligan"]["kernel"]
        stem.with_suffix(".ptx").write_text(code["ptx"])
        stem.with_suffix(".json").write_text(json.dumps(metadata, indent=1) + "\n")
        print(f"{stem}.ptx and .json for sm_{arguments.architecture}")


if __name__ == "__main__":
    main()
