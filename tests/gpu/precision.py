"""Rows of ensembles (docs/numerics/ensembles.md), of masked tokens (docs/numerics/masked_language_model.md) and of precisions and
energy (docs/numerics/data_parallel.md)."""
import json

from corpus import arguments, data_settings, record_settings, small_data, small_settings
from context import require_near, step_losses
from harness import NotOk, Rows

rows = Rows()


@rows.row("ensemble", "correctness",
          "ten members of 5 bits, on the device and on the cpu backend: below the reference on the device, ECE of both", 300)
def ensemble(context, detail):
    steps, members, tokens = (3, 2, 256) if context.quick else (10, 10, 1024) if context.emulated else (400, 10, 8192)
    folder = context.run_folder("ensemble")
    context.train("ensemble", context.config("quickstart.toml"), small_settings(context, "cuda", "fp32", steps))
    seen = {}
    for backend in ("cuda", "cpu"):
        out = context.scratch / f"ensemble_{backend}.json"
        context.mulligan("probe", "ensemble", folder / "weights.safetensors", "--tokens", tokens, "--json", out,
                         *arguments({**context.backend(backend), **data_settings(small_data(context)), "ensemble.bits": 5,
                                     "ensemble.members": members}))
        seen[backend] = json.loads(out.read_text())
    ours, cpu = seen["cuda"], seen["cpu"]
    figures = context.partial = {
        "tokens": ours["tokens"], "members": members, "ensemble": ours["ensemble"]["loss_nats"],
        "reference": ours["reference"]["loss_nats"], "member": ours["member_mean_loss_nats"],
        "model": ours["model"]["loss_nats"], "ambiguity": ours["ambiguity_nats"], "ece_ensemble": ours["ensemble"]["ece"],
        "ece_reference": ours["reference"]["ece"], "cpu": cpu["ensemble"]["loss_nats"]}
    if not ours["ensemble"]["loss_nats"] <= ours["member_mean_loss_nats"]:
        raise NotOk("the ensemble is worse than its mean member, which cannot be")
    # The members' bits are the same, so losses differ by the rounding of matmuls alone.
    for k, (a, b) in enumerate(zip(ours["member_loss_nats"], cpu["member_loss_nats"], strict=True)):
        require_near(f"loss of member {k}", a, b, 1e-3)
    require_near("loss of the ensemble", ours["ensemble"]["loss_nats"], cpu["ensemble"]["loss_nats"], 1e-3)
    if not (context.emulated or context.quick) and not figures["ensemble"] < figures["reference"]:
        raise NotOk(f"ensemble {figures['ensemble']:.5f} nats, reference {figures['reference']:.5f}: not below")
    return figures


@rows.row("masked", "correctness", "a model that fills in masked tokens, trained in fp32 on the device and on the cpu backend", 120)
def masked(context, detail):
    steps = 3 if context.quick else 10 if context.emulated else 100
    losses, results = {}, {}
    for backend in ("cuda", "cpu"):
        name = f"masked_{backend}"
        results[backend] = context.train(name, context.config("numerics/data_parallel/base.toml"), arguments({
            **context.backend(backend), **data_settings(small_data(context)), "model.vocabulary": 512, "model.masking.share": 0.15,
            "train.steps": steps, "train.log_every": 1, **({"train.tokens_per_step": 512} if context.emulated else {})}))
        losses[backend] = step_losses(context.run_folder(name))
    figures = context.partial = {
        "steps": len(losses["cuda"]), "targets": results["cuda"]["val_tokens"], "val_loss_nats": results["cuda"]["val_loss_nats"],
        "cpu": results["cpu"]["val_loss_nats"], "tokens_per_s": results["cuda"]["tokens_per_second"]}
    if not results["cuda"].get("val_masked") or results["cuda"]["val_bpb"] is not None:
        raise NotOk("the score is not that of masked tokens")
    for step, (a, b) in enumerate(zip(losses["cuda"], losses["cpu"], strict=True)):
        require_near(f"loss of step {step}", a, b, (2e-6 if step == 0 else 1e-3) * b)
    require_near("val_loss_nats", figures["val_loss_nats"], figures["cpu"], 2e-3)
    return figures


@rows.row("precisions", "throughput",
          "trainings of the record's shape and 12 times its width squared in fp32, bf16, fp16 and LayerCast: tokens/s (bf16 at "
          "least 1.5 times fp32), joules by the driver's counter", 900)
def precisions(context, detail):
    steps = 2 if context.emulated else 20
    wide = {} if context.emulated else {"model.width": 1024, "model.heads": 16, "model.kv_heads": 4, "model.mlp_hidden": 4096,
                                        "train.tokens_per_step": 32_768}  # 130 million parameters
    figures = context.partial = {}
    for name, more in (("fp32", {"train.compute_dtype": "fp32"}), ("bf16", {"train.compute_dtype": "bf16"}),
                       ("fp16", {"train.compute_dtype": "fp16"}),
                       ("layercast", {"train.compute_dtype": "fp32", "train.layercast": "bf16"})):
        settings = {"train.steps": steps, "train.budget_seconds": 0, "train.reserve_seconds": 0, "schedule.by": "step", "train.log_every": 1,
                    "train.warmup.steps": 0 if context.emulated else 2, "metrics.energy": "true", "data.validation": "''",
                    "checkpoint.at_end": "false", "doctor.level": "off", **wide, **more}
        result = context.train(f"precision_{name}", context.config("records/pr1886.toml"), record_settings(context, **settings))
        energy = result["energy"]
        figures.update({f"{name}_tokens_per_s": result["tokens_per_second"], f"{name}_joules": energy["gpu_joules"]})
        figures["parameters"] = result["parameters"]
        if energy["joules"] is None and not energy["absent"]:
            raise NotOk(f"{name}: energy is neither measured nor said to be absent")
        if context.emulated and energy["gpu_joules"] is not None:
            raise NotOk(f"{name}: energy of a GPU that is not there")
        if energy["gpu_joules"] is not None and not energy["gpu_joules"] > 0:
            raise NotOk(f"{name}: the driver's counter did not grow: {energy['gpu_joules']} J")
    if not context.emulated and not figures["bf16_tokens_per_s"] >= 1.5 * figures["fp32_tokens_per_s"]:
        raise NotOk("bf16 is not 1.5 times as fast as fp32")
    return figures
