"""Row of the numerics lab: task vectors, scored on the device."""
import re

from context import require_near
from corpus import small_settings
from correctness import QUICKSTART, steps_of, trained
from harness import Rows

rows = Rows()


def tuned(context, number):
    """Two steps from the weights of the cpu backend's run, each time of other tokens. That run is short, so its loss tells
    little, which the doctor would refuse to go on from."""
    name = f"tuned_{number}"
    context.train(name, context.config(QUICKSTART), small_settings(context, "cpu", "fp32", 2, **{
        "train.tokens_per_step": number * 128, "ema.decay": 0, "doctor.level": "off",
        "init.from": context.run_folder("cpu_fp32") / "weights.safetensors"}))
    return context.run_folder(name)


def score(context, backend, weights):
    text = context.mulligan("eval", weights, "--config", context.config(QUICKSTART), *small_settings(context, backend, "fp32", 2))
    return float(re.search(r"val_loss\s+([\d.]+)", text).group(1))


@rows.row("task-vectors", "correctness", "4-bit task vectors: scores against the cpu backend's and f32's", 120)
def task_vectors(context, detail):
    trained(context, "cpu", "fp32", steps_of(context))
    base, models = context.run_folder("cpu_fp32"), [tuned(context, number) for number in (1, 2)]
    packed, unpacked, merged = context.scratch / "vectors.safetensors", context.scratch / "unpacked.safetensors", {}
    context.mulligan("vectors", "pack", base, *models, "--bits", 4, "--out", packed)
    context.mulligan("vectors", "unpack", packed, base, "--task", "tuned_1", "--out", unpacked)
    for name, sources in (("f32", models), ("tvq4", [packed])):
        merged[name] = context.scratch / f"merged_{name}.safetensors"
        context.mulligan("vectors", "merge", base, *sources, "--method", "average", "--out", merged[name])
    ours, cpu = (score(context, backend, unpacked) for backend in ("cuda", "cpu"))
    exact, four = (score(context, "cuda", merged[name]) for name in ("f32", "tvq4"))
    figures = context.partial = {"bytes": packed.stat().st_size, "unpacked": ours, "cpu": cpu, "merged_f32": exact,
                                 "merged_4_bit": four}
    require_near("loss of unpacked weights", ours, cpu, 2e-5 * cpu + 1e-5)  # printed with five digits
    require_near("loss of the merged model at 4 bits", four, exact, 1e-3)
    return figures
