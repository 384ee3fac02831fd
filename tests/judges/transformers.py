"""transformers loads folders that `mulligan export --to hf` wrote, scores the same validation text, and continues texts; then this
program reads folders that transformers wrote."""
import json
import math
import pathlib
import re

from judges.support import ROOT, Row, quickstart_run, read_json, shard_tokens

JUDGE = "transformers"
NEEDS = ["numpy", "sentencepiece", "safetensors", "torch", "transformers"]
FAULTS = ["transposed-projection", "rotary-base", "off-by-one"]

# What the small run of every test does not have.
LATER = """[model]
attention_gate = false
tied_head = false
skip_gates = false
xsa_last_layers = 2
q_gain = 0.0
[model.sparse_gate]
window = 12
[model.smear_gate]
window = 12
[model.rope]
table = "bf16"
[model.lanes]
final = "mlp"
"""
QWEN2 = """[model]
family = "qwen2"
vocabulary = 512
layers = 3
width = 64
heads = 4
kv_heads = 2
mlp_hidden = 160
tied_head = {tied}
[model.rope]
base = 10000.0
[data]
train = "{data}/fineweb_train_*.bin"
validation = "{data}/fineweb_val_*.bin"
tokenizer = "{data}/tokenizer.model"
[optimizer.all]
plugin = "adamw"
lr = 0.005
[[parameters]]
match = "*"
optimizer = "all"
[train]
steps = 30
tokens_per_step = 1024
sequence_length = 256
[eval]
sequence_length = 256
packed_sequences = 4
"""
PROMPTS = ["The ", "a", "In the beginning", "0 1 2 3"]


def load(folder):
    import torch
    import transformers
    torch.set_num_threads(1)  # small matrices: more threads wait for one another, on busy machines for minutes
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    model, report = transformers.AutoModelForCausalLM.from_pretrained(folder, trust_remote_code=True, dtype=torch.float32,
                                                                      output_loading_info=True)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
    return model.eval(), tokenizer, sorted(map(str, [*report["missing_keys"], *report["unexpected_keys"], *report["mismatched_keys"]]))


def segments(tokens, bos, sequence, row):
    """(begin, end) of what a score reads at once, as docs/evaluation.md has it: rows of `row` tokens, cut where a document begins
    and every `sequence` tokens from there."""
    for start in range(0, len(tokens) - 1, row):
        begin, last = start, min(start + row, len(tokens) - 1)
        for at in range(start + 1, last):
            if tokens[at] == bos or at - begin == sequence:
                yield begin, at
                begin = at
        yield begin, last


def bits_per_byte(model, tokens, text_bytes, bos, settings, shift=1):
    """Of the whole text. Each segment is read by itself, so that it does not matter whether a model stays inside documents."""
    import torch
    nats, ids = 0.0, torch.tensor(tokens.astype("int64"))
    with torch.no_grad():
        for begin, end in segments(tokens, bos, *settings):
            z = model(ids[None, begin:end]).logits[0].double()
            targets = ids[begin + shift:end + shift]
            nats += float(torch.nn.functional.cross_entropy(z[:len(targets)], targets, reduction="sum"))
    return nats / math.log(2) / text_bytes


def exported(context, run, name, *options):
    folder = context.scratch / f"hf-{name}"
    # A run's paths are relative to where it was started; those of scratch are absolute.
    context.mulligan("export", run, "--to", "hf", folder, *options, cwd=ROOT if run == quickstart_run() else context.scratch)
    if context.planted == "transposed-projection":
        spoil_weights(folder / "model.safetensors")
    if context.planted == "rotary-base":
        config = read_json(folder / "config.json")
        config["model"]["rope.base"] = 20000.0
        (folder / "config.json").write_text(json.dumps(config))
    return folder


def spoil_weights(path):
    """Transposes the first square matrix of the bank of queries and outputs."""
    import safetensors.torch
    tensors = safetensors.torch.load_file(path)
    tensors["qo_bank"][0] = tensors["qo_bank"][0].T.clone()
    safetensors.torch.save_file(tensors, path, {"format": "pt"})


def shards_of(run):
    """Where the shards, tokenizer and text of a run lie, by its resolved configuration."""
    import tomllib
    data = tomllib.loads((run / "config.toml").read_text())["data"]
    validation = pathlib.Path(data["validation"])
    root = run.parents[1] if not validation.is_absolute() else pathlib.Path("/")
    return sorted((root / validation.parent).glob(validation.name))


def text_of(run, folder):
    """The validation tokens of a run, and the token that begins a document by the tokenizer in `folder`."""
    import numpy
    import sentencepiece
    tokens = numpy.concatenate([shard_tokens(path) for path in shards_of(run)])
    return tokens, sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model")).bos_id()


def row_settings(run):
    """Longest segment and length of the rows in which a run is scored."""
    import tomllib
    config = tomllib.loads((run / "config.toml").read_text())["eval"]
    return config["sequence_length"], config["sequence_length"] * config["packed_sequences"]


def scored(context, run, name, bound, *options):
    """The score of the exported folder against the run's, or against the one that eval gives with `options`."""
    folder = exported(context, run, name, *options)
    model, _, keys = load(folder)
    tokens, bos = text_of(run, folder)
    text = shards_of(run)[0].parent / "validation.txt"
    ours = read_json(run / "result.json")["val_bpb"]
    shift = 2 if context.planted == "off-by-one" else 1
    theirs = bits_per_byte(model, tokens, text.stat().st_size, bos, row_settings(run), shift)
    yield Row(f"{name}: keys that do not match", f"{len(keys)}{': ' + ', '.join(keys[:3]) if keys else ''}", "0", not keys)
    yield Row(f"{name}: val_bpb of {len(tokens) - 1} tokens, {ours:.6f} here", f"{abs(ours - theirs):.1e} bpb", f"{bound:g}",
              abs(ours - theirs) <= bound)


def continued(context, run, name, tokens=200):
    """Greedy texts, token for token; where they part, how close the two best logits are."""
    import torch
    model, tokenizer, _ = load(context.scratch / f"hf-{name}")
    unequal = []
    for prompt in PROMPTS:
        ours = context.mulligan("generate", run, "--prompt", prompt, "--max-tokens", tokens, "--temperature", 0, "--quiet")
        ids = tokenizer(prompt, return_tensors="pt").input_ids
        with torch.no_grad():
            theirs = tokenizer.decode(model.generate(ids, max_new_tokens=tokens, do_sample=False)[0], skip_special_tokens=True)
        if ours.rstrip("\n") != theirs.rstrip("\n"):
            unequal.append(prompt)
    yield Row(f"{name}: {tokens} greedy tokens after {len(PROMPTS)} prompts", f"{len(unequal)} texts{unequal or ''}", "0", not unequal)


def read_back(context, name, run):
    """A folder that transformers saved, in several files, and drawn anew: this program's loss against transformers' on it."""
    import torch
    import safetensors.torch
    model, _, _ = load(context.scratch / f"hf-{name}")
    torch.manual_seed(5)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * (0.3 if parameter.ndim == 1 else parameter.size(-1) ** -0.5))
    folder = context.scratch / "theirs"
    model.save_pretrained(folder, max_shard_size="100KB")
    files = len(list(folder.glob("*.safetensors")))
    context.mulligan("checkpoint", "import", folder, "--config", run / "config.toml", "--out", "back.safetensors")
    ours = safetensors.torch.load_file(context.scratch / "back.safetensors")
    theirs = model.state_dict()
    wrong = [key for key in ours if not torch.equal(ours[key], theirs[key].float())]
    yield Row(f"{name}: a folder of theirs in {files} files, {len(ours)} tensors: bits after import", f"{len(wrong)} tensors", "0",
              not wrong and files > 1)
    tokens, bos = text_of(run, context.scratch / f"hf-{name}")
    said = context.mulligan("eval", "back.safetensors", "--config", run / "config.toml")
    ours = float(re.findall(r"loss ([0-9.]+) nats", said)[-1])
    theirs = bits_per_byte(model, tokens, len(tokens) - 1, bos, row_settings(run)) * math.log(2)
    yield Row(f"{name}: loss with the weights of that folder, {ours:.5f} nats here", f"{abs(ours - theirs):.1e} nats", "1e-4 of it",
              abs(ours - theirs) <= 1e-4 * theirs)


def judge(context):
    small = context.run("small")
    yield from scored(context, small, "record, small", 1e-5)
    if context.planted:
        return
    yield from continued(context, small, "record, small")
    yield from scored(context, context.run("later", LATER), "record, later parts", 1e-5)
    if quickstart_run():
        yield from scored(context, quickstart_run(), "record, quickstart", 1e-5)
    for tied in ("true", "false"):
        name = f"qwen2, {'tied' if tied == 'true' else 'untied'} head"
        file = context.scratch / f"qwen2-{tied}.toml"
        file.write_text(QWEN2.format(tied=tied, data=context.data))
        run = context.scratch / "runs" / file.stem
        context.mulligan("train", file, "--set", f"run.directory={run}", "--quiet")
        yield from scored(context, run, name, 1e-5)
        yield from continued(context, run, name)
        yield from read_back(context, name, run) if tied == "true" else ()
