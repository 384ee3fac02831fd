"""Rows of attention's rounding bias (docs/numerics/attention_bias.md): the own kernel's bias without and with the rule, and
what the rule does to a small bf16 training and its speed."""
import json
import statistics

import place
from harness import NotOk, Rows

rows = Rows()
FOLDER = "numerics/attention_bias"


def own_attention(context):
    return [part for key, value in {**context.backend("cuda"), "backend.attention": "own"}.items() for part in ("--set", f"{key}={value}")]


@rows.row("attention-bias", "correctness",
          "repeated maxima: mean signed error over 0.05 ulp without the rule, below 0.01 with it (100,000 queries)", 300)
def attention_bias(context, detail):
    # 48 of a segment's 64 queries count. A few segments say nothing of a mean, but that all is computed.
    segments = 4 if context.quick or context.emulated else 2200
    out = context.scratch / "attention_bias.json"
    context.mulligan("probe", "attention-bias", context.config(f"{FOLDER}/base.toml"), "--json", out, "--segments", segments,
                     "--seeds", 1, "--betas", 2, *own_attention(context))
    found = json.loads(out.read_text())
    bias = {(row["output_rounding"], row["values"], row["maxima"], row["beta"], row["normalizer"]): row["bias_ulp"] for row in found}
    figures = context.partial = {"queries": found[0]["rows"]}
    # Where there is a bias to correct: rounded sums of two to four maxima; rounded once, the others' values smaller.
    problems = [("sums", "one_sign", maxima) for maxima in (2, 3, 4)] + [("once", "small_rest", maxima) for maxima in (2, 3)]
    for problem in problems:
        name = "_".join(map(str, problem))
        figures[f"{name}_off"], figures[f"{name}_on"] = bias[(*problem, 0, "exact")], bias[(*problem, 2, "exact")]
    if segments > 1000:
        for key, value in figures.items():
            if key.endswith("_off") and abs(value) <= 0.05 or key.endswith("_on") and abs(value) >= 0.01:
                raise NotOk(f"{key} is {value:+.4f} ulp")
    return figures


@rows.row("attention-run", "throughput",
          "small bf16 trainings on text that repeats, the rule off and on: loss within the seeds' noise, less than 5 % slower", 900)
def attention_run(context, detail):
    rehearsal = context.quick or context.emulated
    steps, seeds = (3, (42, 314)) if rehearsal else (2500, (42, 314, 1337))
    data = context.scratch / "attention_data"
    context.commands.run([place.ROOT / "configs" / FOLDER / "data", data, 16 if rehearsal else 800], {"MULLIGAN": str(context.folder / "bin/mulligan")})
    seen = {}
    for rule in ("off", "repeat_max"):
        for seed in seeds:
            settings = {"run.seed": seed, "train.steps": steps, "model.attention.stabilize": rule, "metrics.attention_every": steps,
                        "data.train": f"{data}/*_train_*.bin", "data.validation": f"{data}/*_val_*.bin",
                        "data.tokenizer": f"{data}/tokenizer.model",
                        **({"train.tokens_per_step": 128, "train.sequence_length": 64, "eval.sequence_length": 64} if rehearsal else {})}
            seen[rule, seed] = context.train(f"attention_{rule}_{seed}", context.config(f"{FOLDER}/base.toml"),
                                             [*own_attention(context),
                                              *(part for key, value in settings.items() for part in ("--set", f"{key}={value}"))])
    losses = {rule: [seen[rule, seed]["val_loss_nats"] for seed in seeds] for rule in ("off", "repeat_max")}
    speed = {rule: statistics.median(seen[rule, seed]["tokens_per_second"] for seed in seeds) for rule in losses}
    means = {rule: statistics.fmean(values) for rule, values in losses.items()}
    noise = max(statistics.stdev(values) for values in losses.values())
    figures = context.partial = {"steps": steps, "loss_off": means["off"], "loss_on": means["repeat_max"],
                                 "standard_deviation": noise, "slowdown": speed["off"] / speed["repeat_max"] - 1}
    if not all(value == value and value < 1e3 for values in losses.values() for value in values):
        raise NotOk("a training's loss is not a number")
    if rehearsal:
        return figures  # three steps say nothing of noise, and the emulation nothing of speed
    if abs(means["repeat_max"] - means["off"]) > 2 * noise:
        raise NotOk(f"losses of {means['off']:.5f} and {means['repeat_max']:.5f} nats lie further apart than seeds do")
    if figures["slowdown"] > 0.05:
        raise NotOk(f"the rule makes a step {figures['slowdown']:.1%} slower")
    return figures
