"""Rows of the second part: the record's shape on one device, kernel by kernel, against PyTorch and against what the device can do
at best. Emulated they are a rehearsal: shapes are small, PyTorch runs on the CPU, and no figure says anything of a GPU."""
import json
import os
import re
import shutil

import place
import predicted
from context import machine, used_gpu_memory
from corpus import record_data, record_settings, record_shape
from harness import NotOk, Rows, Sampled, Skipped

rows = Rows()
RECORD = "records/pr1886.toml"


def torch_script(context, script, *arguments_):
    python = context.torch_python()
    device = "cpu" if context.emulated else "cuda"
    # PyTorch brings CUDA libraries of its own; those found for the backend may be of another version.
    environment = {"LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", "")}
    text = context.commands.run([python, place.ROOT / script, "--device", device, *arguments_], environment)
    return json.loads(text.splitlines()[-1])


def numbers(values):
    return [part for name, value in values.items() for part in (f"--{name}", value)]


@rows.row("ceilings", "throughput", "copy bandwidth and matmuls at best, measured by PyTorch", 90)
def ceilings(context, detail):
    small = ["--size", 256, "--copy_bytes", 1 << 22, "--repeats", 2] if context.emulated else []
    seen = context.memory["ceilings"] = torch_script(context, "tests/gpu/ceilings.py", *small)
    return {"copy_GB_per_s": seen["copy_bytes_per_second"] / 1e9, "bf16_TFLOP_per_s": seen["bf16_flops_per_second"] / 1e12,
            "fp32_TFLOP_per_s": seen["fp32_flops_per_second"] / 1e12}


def profile(context, looped, steps, environment=None, **settings):
    order = ["--phase", "looped"] if looped else []
    return json.loads(context.mulligan("profile", context.config(RECORD), "--json", "--steps", steps, *order,
                                       *record_settings(context, **settings), environment=environment))


@rows.row("start", "throughput", "seconds to the end of the first step: kernels shipped, compiled, and from the cache", 360)
def start(context, detail):
    record_data(context)
    shipped = sorted(file.stem for file in (context.folder / "lib/mulligan/kernels").glob("*.kernels"))
    figures = context.partial = {"kernels_shipped": " ".join(shipped) or "none"}
    for what, settings in (("", {}), ("_without_shipped_kernels", {"backend.kernel_file": "none"})):
        cache = context.scratch / "cold"
        shutil.rmtree(cache, ignore_errors=True)
        for state in ("cold", "warm"):
            seen = profile(context, True, 1, {"XDG_CACHE_HOME": str(cache)}, **settings)
            figures[state + what] = seen["first_step_seconds"]
    return figures


def kernel_table(profiled, ceilings_):
    """The longest kernels, with their share of what the device can do at best."""
    share = lambda rate, key: f" ({rate / ceilings_[key]:.0%})" if ceilings_ else ""
    lines = ["| program | kernel | calls | ms | share | TFLOP/s | GB/s |", "|---|---|---|---|---|---|---|"]
    for row in profiled["rows"][:16]:
        flops, data = row["flops"] / row["seconds"], row["bytes"] / row["seconds"]
        lines.append(f"| {row['program']} | {row['kernel']} | {row['calls']} | {1e3 * row['seconds']:.3f} "
                     f"| {row['seconds'] / profiled['calls_seconds']:.1%} "
                     f"| {f'{flops / 1e12:.3g}' + share(flops, 'bf16_flops_per_second') if flops else '-'} "
                     f"| {data / 1e9:.3g}{share(data, 'copy_bytes_per_second')} |")
    return "\n".join(lines) + "\n\nEach call is timed by itself, its synchronisation included; bytes: every argument once."


def peers(context, looped):
    """tokens/s of each PyTorch variant; a variant that fails is named in the table, not hidden."""
    _, shape = record_shape(context)
    values = {**shape, "loop_passes": 2 if looped else 0, "steps": 2 if context.quick else 5,
              "compile": 0 if context.emulated else 1}
    found = {}
    for attention in ("sdpa",) if context.emulated else ("flex", "sdpa"):
        try:
            found[attention] = torch_script(context, "tests/gpu/torch_peer.py", *numbers(values), "--attention", attention)
        except NotOk as fault:
            found[attention] = str(fault)
    return found


def step_row(context, detail, looped):
    ours = profile(context, looped, 2 if context.quick else 5)
    ceilings_ = context.memory.get("ceilings")
    rate = ours["flops"] / ours["step_seconds"]
    figures = {"tokens_per_s": ours["tokens_per_second"], "ms": 1e3 * ours["step_seconds"], "TFLOP_per_s": rate / 1e12}
    if ceilings_:
        figures["of_bf16_ceiling"] = f"{rate / ceilings_['bf16_flops_per_second']:.1%}"
        moved = sum(row["bytes"] for row in ours["rows"]) / ours["step_seconds"]
        figures["GB_per_s"], figures["of_copy"] = moved / 1e9, f"{moved / ceilings_['copy_bytes_per_second']:.1%}"
    detail.append(kernel_table(ours, ceilings_))
    card = "h100" if context.emulated else predicted.card_of(machine(context))
    if card:
        foreseen = predicted.predict(context, context.config(RECORD), card, looped)
        figures["predicted_ms"] = 1e3 * foreseen["predicted_step_seconds"]
        detail.append(predicted.table(ours, foreseen, card))
    context.partial = figures
    try:
        found = peers(context, looped)
    except Skipped as reason:
        figures["PyTorch"] = f"not run ({reason})"
        return figures
    fastest = max((seen["tokens_per_second"] for seen in found.values() if isinstance(seen, dict)), default=None)
    for attention, seen in found.items():
        figures[f"PyTorch_{attention}"] = seen["tokens_per_second"] if isinstance(seen, dict) else f"failed ({seen})"
        if isinstance(seen, dict):
            figures[f"PyTorch_{attention}_GB"] = seen["peak_memory_bytes"] / 1e9
    if fastest is None:
        raise NotOk("no PyTorch peer ran")
    figures["ratio_to_the_best"] = ours["tokens_per_second"] / fastest
    return figures


rows.row("step-plain", "throughput", "a step of the record's shape, plain layer order, against PyTorch", 420)(
    lambda context, detail: step_row(context, detail, False))
rows.row("step-looped", "throughput", "a step of the record's shape, layers repeated, against PyTorch", 480)(
    lambda context, detail: step_row(context, detail, True))


@rows.row("memory", "throughput", "peak memory of a run of the record's shape against the plan", 180)
def memory(context, detail):
    settings = record_settings(context, **{"train.budget_seconds": 0, "train.reserve_seconds": 0, "train.steps": 2,
                                           "schedule.by": "step", "train.warmup.steps": 1})
    config = context.config(RECORD)
    plan = context.mulligan("train", config, "--dry-run", *settings)
    total = re.search(r"^\s+total\s+([\d,]+) bytes", plan, re.MULTILINE)
    planned = int(total.group(1).replace(",", ""))
    with Sampled(used_gpu_memory if not context.emulated else lambda: 0) as used:
        result = context.train("memory", config, settings)
    figures = context.partial = {"planned_GB": planned / 1e9, "allocated_GB": result["peak_device_memory_bytes"] / 1e9}
    if not context.emulated:
        figures["more_in_use_on_the_GPU_GB"] = (used.largest - used.first) / 1e9  # with the context and the libraries' own
    if abs(planned - result["peak_device_memory_bytes"]) > 0.05 * planned:
        raise NotOk("the plan is more than 5 % off")
    if not context.emulated and abs(used.largest - used.first - planned) > 0.05 * planned:
        raise NotOk("what the GPU has in use is more than 5 % off the plan")
    return figures


def ttt_shape(context):
    """Settings of [ttt] and what the peer has to be told: no phases, since the peer trains adapters only."""
    _, shape = record_shape(context)
    peer = {**{name: shape[name] for name in shape if name not in ("sequence", "tokens")}, "loop_passes": 2,
            "documents": 64, "context": 2048, "chunk": 48, "rank": 128, "alpha": 144.0, "lr": 1e-4, "weight_decay": 2.0}
    if context.emulated:
        peer.update(documents=2, context=64, chunk=32, rank=4)
    settings = {"ttt.batch_documents": peer["documents"], "ttt.context_tokens": peer["context"],
                "ttt.chunk_tokens": peer["chunk"], "ttt.adapters.rank": peer["rank"], "ttt.prefix_documents": 0,
                "eval.packed_sequences": 2 if context.emulated else 32}
    return settings, peer


@rows.row("ttt-speed", "throughput", "test-time training of the record's shape against the PyTorch loop", 540)
def ttt_speed(context, detail):
    settings, peer = ttt_shape(context)
    weights = context.run_folder("memory") / "weights.safetensors"
    if not weights.exists():
        memory(context, [])
    output = context.scratch / "ttt_speed"
    output.mkdir(exist_ok=True)
    context.mulligan("ttt", weights, "--config", context.config(RECORD), "--output", output,
                     *record_settings(context, **settings))
    ours = json.loads((output / "ttt_result.json").read_text())["with_ttt"]
    rate = ours["tokens"] / ours["seconds"]
    figures = context.partial = {"tokens": ours["tokens"], "tokens_per_s": rate, "val_bpb": ours["val_bpb"]}
    shard = next(record_data(context).glob("*_val_*.bin"))
    best = None
    try:
        for skip in (1, 0):
            seen = torch_script(context, "tests/bench/torch_ttt_peer.py", weights, shard, *numbers(peer), "--mode", "bf16",
                                "--skip_finished", skip, "--seed", 42, "--rows", 1)
            if seen["tokens"] != ours["tokens"]:
                raise NotOk(f"PyTorch scored {seen['tokens']} tokens, not the same documents")
            figures["PyTorch_finished_left_out" if skip else "PyTorch_as_the_record"] = seen["tokens_per_second"]
            figures["PyTorch_val_bpb"] = ours["val_bpb"] * seen["loss_nats"] / ours["val_loss_nats"]
            best = max(best or 0, seen["tokens_per_second"])
    except Skipped as reason:
        figures["PyTorch"] = f"not run ({reason})"
        return figures
    figures["ratio_to_the_best"] = rate / best
    if abs(figures["PyTorch_val_bpb"] - ours["val_bpb"]) > 2e-2:
        raise NotOk("the two do not find the same bits per byte")
    return figures
