"""Rows over NCCL. Emulated: over the stubs of tests/stub, which a build folder has."""
from context import step_losses, weights
from correctness import QUICKSTART, repeated, require_equal_bits, steps_of
from corpus import small_settings
from harness import NotOk, Rows, Skipped

rows = Rows()
SHARES_GPUS = 23003  # the first NCCL whose ranks may share a GPU: 2.30.3


def over_nccl(context):
    settings = {"communicator.plugin": "nccl"}
    if not context.emulated:
        return settings
    stub = context.folder / "tests/stub"
    if not (stub / "libnccl.so.2").exists():
        raise Skipped("tests/stub is not there: build folders have it, archives do not")
    return {**settings, "communicator.library": stub / "libnccl.so.2",
            "backend.emulated_driver": stub / "libcuda.so.1"}


def nccl_version(context):
    """Such as 22809 for 2.28.9, of the library that the program will find."""
    code = ("import ctypes; number = ctypes.c_int(); ctypes.CDLL('libnccl.so.2').ncclGetVersion(ctypes.byref(number)); "
            "print(number.value)")
    try:
        return int(context.commands.run([context.options.python, "-c", code]))
    except NotOk:
        raise Skipped("libnccl.so.2 is not installed, and PyTorch's packages do not have it") from None


def text_of(version):
    return f"{version // 10000}.{version // 100 % 100}.{version % 100}"


def require_shared_gpus(version):
    if version < SHARES_GPUS:
        raise Skipped(f"library {text_of(version)} refuses two ranks on one GPU; {text_of(SHARES_GPUS)} is the first that does not")


@rows.row("nccl", "correctness", "one rank through NCCL against none, to the bit", 120)
def nccl(context, detail):
    settings = over_nccl(context)
    version = {} if context.emulated else {"NCCL": text_of(nccl_version(context))}
    steps = steps_of(context)
    figures = require_equal_bits(context, repeated(context, "alone", steps), repeated(context, "over_nccl", steps, **settings))
    return {**version, **figures}


@rows.row("nccl-ranks", "correctness", "two ranks on one GPU through NCCL against one rank, determinism = world, to the bit", 180)
def nccl_ranks(context, detail):
    settings = over_nccl(context)
    version = {}
    if not context.emulated:
        number = nccl_version(context)
        require_shared_gpus(number)
        version = {"NCCL": text_of(number)}
    world = {"run.determinism": "world", "train.micro_batches": 2, "backend.index": 0, "data.validation": "''"}
    context.train("world_alone", context.config(QUICKSTART), small_settings(context, "cuda", "fp32", steps_of(context), **world))
    folder = context.run_folder("world_ranks")
    context.mulligan("launch", "--nproc-per-node", 2, "--log-dir", context.scratch / "launch_logs", "--", "train",
                     context.config(QUICKSTART), "--set", f"run.directory={folder}",
                     *small_settings(context, "cuda", "fp32", steps_of(context), **world, **settings),
                     environment={"NCCL_MULTI_RANK_GPU_ENABLE": "1"})
    one, two = ((weights(f), step_losses(f)) for f in (context.run_folder("world_alone"), folder))
    return {**version, **require_equal_bits(context, one, two)}
