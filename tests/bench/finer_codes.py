"""What finer codes gain: bytes and bits per byte of an artifact, without test-time training, over the keys of [quantize].

  python3 tests/bench/finer_codes.py RUN [--seeds 1,2,3]

RUN is a finished run of configs/quickstart.toml. The base has pull request 1886's settings. "x0.5" halves the steps: clip_sigmas is
multiplied. Each seed has its own calibration text. RUN/finer_codes.json keeps the measurements; only those that it lacks are made.
Prints a Markdown table. Differences are from the base of the same seed: the mean and its standard error, from all settings' scatter.
"""
import argparse
import json
import pathlib
import re
import statistics
import tempfile

from fair_peer import run

EMBEDDING, ATTENTION, MLP = "tok_emb.weight", "blocks.*.attn.*.weight", "blocks.*.mlp.*.weight"
BASE = {EMBEDDING: (7, 15.0), ATTENTION: (6, 13.0), MLP: (6, 12.0)}
KINDS = {"all": tuple(BASE), "embedding": (EMBEDDING,), "attention": (ATTENTION,), "MLP": (MLP,)}
ROLES = ("attn.c_q", "attn.c_k", "attn.c_v", "attn.proj", "mlp.fc", "mlp.proj")


def steps(factor, matches):
    like = {match: BASE.get(match, BASE[ATTENTION if "attn" in match else MLP]) for match in matches}
    return {match: (bits, factor * sigmas) for match, (bits, sigmas) in like.items()}


def settings():
    """(name, rows that come before the base's or replace them, keys of [quantize])"""
    yield "base", {}, {}
    yield from ((f"{kind} x{factor}", steps(factor, KINDS[kind]), {}) for kind in KINDS for factor in (0.5, 0.7, 1.4))
    yield "embedding x0.833", steps(0.833, KINDS["embedding"]), {}
    yield from ((f"{role} x2", steps(2, [f"blocks.*.{role}.weight"]), {}) for role in ROLES)
    for layers in ("01", "23", "45"):
        yield f"layers {layers} x2", steps(2, [f"blocks.[{layers}].{kind}.*.weight" for kind in ("attn", "mlp")]), {}
    yield "embedding 8 bits, same step", {EMBEDDING: (8, 15 * 127 / 63)}, {}
    yield "matrices 5 bits, same step", {ATTENTION: (5, 13 * 15 / 31), MLP: (5, 12 * 15 / 31)}, {}
    for keys in ({"protected_groups": 1, "protected_size": 16}, {"protected_groups": 4, "protected_size": 16}, {"corrected_tensors": 1},
                 {"corrected_tensors": 3}, {"corrected_tensors": 3, "correction_rank": 12}, {"damping": 0.1}, {"order": "none"}, {"plugin": "rtn"},
                 {"calibration_batches": 64}):
        yield ", ".join(f"{key} {value}" for key, value in keys.items()), {}, keys
    yield "embedding x0.833, corrected_tensors 3", steps(0.833, KINDS["embedding"]), {"corrected_tensors": 3}


def measured(options, rows, keys, seed, folder):
    quantize = {"plugin": "gptq", "compression": "adaptive", "calibration_batches": 16, "calibration_rows": 4} | keys
    table = [(match, f'"int"\nbits = {bits}\nclip_sigmas = {sigmas}') for match, (bits, sigmas) in (rows | BASE | rows).items()]
    config, artifact = pathlib.Path(folder, "variant.toml"), pathlib.Path(folder, "artifact")
    config.write_text("\n".join([f"extends = '{options.run.resolve()}/config.toml'\n[quantize]"]
                                + [f"{key} = {json.dumps(value)}" for key, value in quantize.items()]
                                + [f'[[quantize.tensors]]\nmatch = "{match}"\nformat = {row}'
                                   for match, row in table + [("*.attn_gate_w", '"int8_row"'), ("*", '"fp16"')]]))
    run([options.program, "quantize", options.run / "weights.safetensors", "--config", config, "--output", artifact, "--set", f"run.seed={seed}"])
    score = run([options.program, "eval", artifact, "--set", "eval.tokens=60000"])
    return artifact.stat().st_size, float(re.search(r"val_bpb ([\d.]+)", score)[1])


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("run", type=pathlib.Path)
parser.add_argument("--program", default="build/release/bin/mulligan")
parser.add_argument("--seeds", default="1,2,3")
options = parser.parse_args()
kept = options.run / "finer_codes.json"
known = json.loads(kept.read_text()) if kept.exists() else {}
with tempfile.TemporaryDirectory() as folder:
    for name, rows, keys, seed in [(*setting, seed) for seed in options.seeds.split(",") for setting in settings()]:
        if seed not in known.setdefault(name, {}):
            known[name][seed] = measured(options, rows, keys, seed, folder)
            kept.write_text(json.dumps(known, indent=1))
changes = {name: [1e5 * (bpb - known["base"][seed][1]) for seed, (_, bpb) in known[name].items()] for name, *_ in settings() if known.get(name)}
scattered = [(len(values), statistics.variance(values)) for name, values in changes.items() if len(values) > 1 and name != "base"]
scatter = (sum((n - 1) * variance for n, variance in scattered) / max(sum(n - 1 for n, _ in scattered), 1)) ** 0.5
print("| setting | seeds | bytes | kB | bits per byte | difference, 1e-5 | gain per kB, 1e-5 |\n|---|---|---|---|---|---|---|")
for name, differences in changes.items():
    (size, bpb), (base, _) = ([statistics.mean(column) for column in zip(*known[which].values())] for which in (name, "base"))
    kilobytes, change, error = (size - base) / 1000, statistics.mean(differences), scatter / len(differences) ** 0.5
    gain = f"{-change / kilobytes:.1f} ± {error / abs(kilobytes):.1f}" if abs(kilobytes) > 1 else ""
    print(f"| {name} | {len(differences)} | {size:,.0f} | {kilobytes:+.1f} | {bpb:.5f} | {change:+.0f} ± {error:.0f} | {gain} |")
