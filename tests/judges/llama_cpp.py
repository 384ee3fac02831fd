"""llama.cpp (in the package xllamacpp) reads what `mulligan export --to gguf` writes: its probability of each next token."""
import math

from judges.support import Row, shard_tokens
from judges.transformers import QWEN2, load

JUDGE = "llama.cpp"
NEEDS = ["numpy", "sentencepiece", "safetensors", "torch", "transformers", "xllamacpp"]
FAULTS = ["off-by-one-token"]

FIRST, TOKENS = 8, 120  # of one text: TOKENS tokens are predicted, each after at least FIRST others


def likelihoods(path, tokens, targets):
    """Nats of target i after tokens[:FIRST + i]."""
    import xllamacpp
    settings = xllamacpp.CommonParams()
    settings.model.path = str(path)
    settings.n_ctx, settings.n_predict, settings.warmup, settings.n_parallel = 512, 1, False, 1
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 2
    settings.verbosity = 0
    server, nats = xllamacpp.Server(settings), []
    for i, target in enumerate(targets):
        answer = server.handle_completions({"prompt": [int(t) for t in tokens[:FIRST + i]], "n_predict": 1, "n_probs": 512, "temperature": 0.0,
                                            "cache_prompt": False, "return_tokens": True})
        best = answer["choices"][0]["logprobs"]["content"][0]
        found = {row["id"]: row["logprob"] for row in best["top_logprobs"]}
        nats.append(-found.get(int(target), -math.inf))
    return nats


def judge(context):
    import numpy
    import torch
    file, run = context.scratch / "llama.toml", context.scratch / "runs/llama"
    file.write_text(QWEN2.format(tied="true", data=context.data))
    context.mulligan("train", file, "--set", f"run.directory={run}", "--quiet")
    tokens = shard_tokens(sorted(context.data.glob("fineweb_val_*.bin"))[0])[:FIRST + TOKENS].astype("int64")
    context.mulligan("export", run, "--to", "gguf", "f32.gguf", "--dtype", "f32")
    shift = 1 if context.planted else 0
    targets = tokens[FIRST - shift:FIRST + TOKENS - shift]
    theirs = likelihoods(context.scratch / "f32.gguf", tokens, targets)
    # The folder for transformers has been judged to be this program's model.
    context.mulligan("export", run, "--to", "hf", "hf")
    model, _, _ = load(context.scratch / "hf")
    with torch.no_grad():
        z = model(torch.tensor(tokens[None, :-1])).logits[0, FIRST - 1:].double()
    ours = torch.nn.functional.cross_entropy(z, torch.tensor(tokens[FIRST:]), reduction="none").numpy()
    off, worst = abs(float(ours.mean()) - float(numpy.mean(theirs))), float(numpy.abs(ours - numpy.array(theirs)).max())
    yield Row(f"mean loss of {TOKENS} tokens in f32, {ours.mean():.6f} nats of the exported folder", f"{off:.1e} nats, one token {worst:.1e}", "1e-04",
              math.isfinite(off) and off <= 1e-4)
