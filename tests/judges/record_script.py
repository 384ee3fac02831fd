"""The record's own script (openai/parameter-golf, pull requests 1886 and 2014) on a CPU: its forward pass, evaluation, quantiser and
test-time training on weights and artifacts of ours, then this program on weights and artifacts of its. It is fetched when it is
needed, and its bytes are pinned.

Replaced are its attention, by torch's, and its two Triton kernels, which training alone calls, by their formulas; adapters start
from this program's drawings, since two generators draw two things."""
import contextlib
import importlib.util
import math
import os
import struct
import sys
import types

from judges.record_script_settings import ENVIRONMENT, PULLS, settings
from judges.support import ROOT, Row, fetched, read_json, shard_tokens
from judges.torch_weights import convert

JUDGE = "the record's script"
NEEDS = ["numpy", "sentencepiece", "safetensors", "torch", "brotli"]
FAULTS = ["transposed-lambdas", "another-draw", "code-off-by-one"]

TOKENS = 4 * 1024 + 1
# Tokens of the documents; the last one takes what is left. They make four batches of test-time training, and two of these come
# after all steps on the base; each of 2014's three sizes of a chunk; up to 25 windows of a document.
DOCUMENTS = (180, 330, 90, 700, 260, 1300, 150, 420, 120, 350)
BOUND = {"fp32": 1e-5, "bf16": 1e-3}


def attention(q, k, v, mask=None):
    """[..., T, heads, width] with as many or fewer heads of keys; causal, or as `mask` [T, T] says."""
    import torch
    heads = q.shape[-2] // k.shape[-2]
    q, k, v = (x.movedim(-2, -3) for x in (q, k.repeat_interleave(heads, -2), v.repeat_interleave(heads, -2)))
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None).movedim(-3, -2)


def attention_in_segments(q, k, v, cu_seqlens_q, causal, **_):
    import torch
    position = torch.arange(q.shape[0])
    segment = torch.bucketize(position, cu_seqlens_q[1:].long(), right=True)
    return attention(q, k, v, (segment[:, None] == segment[None]) & (position[:, None] >= position[None]))


def load(pull, data, scratch):
    """The script as a module, with its settings of the environment."""
    import torch
    import torch.nn.functional as F
    sys.modules["flash_attn_interface"] = types.SimpleNamespace(flash_attn_func=lambda q, k, v, causal: attention(q, k, v),
                                                                flash_attn_varlen_func=attention_in_segments)
    os.environ.update(ENVIRONMENT[pull] | {"DATA_DIR": str(data), "ARTIFACT_DIR": str(scratch / f"script-{pull}"), "RUN_ID": f"judged{os.getpid()}"})
    spec = importlib.util.spec_from_file_location(f"record_script_{pull}", fetched("openai/parameter-golf", f"refs/pull/{pull}/head", *PULLS[pull]))
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    script.log = lambda *_, **__: None
    script.FusedLeakyReLUSquareMLP = lambda x, up, down: F.linear(F.leaky_relu(F.linear(x, up), 0.5).square(), down)
    script.softcapped_cross_entropy = lambda logits, targets, cap, reduction: F.cross_entropy(
        cap * torch.tanh(logits.float() / cap), targets, reduction=reduction)
    return script


class Script:
    """The script at one precision: "fp32" leaves out its cast to bf16, "bf16" computes as it does, on the CPU."""

    def __init__(self, module, precision, draw_seed):
        import torch
        self.module, self.h, self.precision, self.draw_seed = module, module.Hyperparameters(), precision, draw_seed
        os.makedirs(self.h.artifact_dir, exist_ok=True)
        self.cpu = torch.device("cpu")
        with self.as_it_is():
            self.data = module.ValidationData(self.h, self.cpu)
        module.BOS_ID = int(self.data.sp.bos_id())
        if hasattr(self.data, "val_bytes"):  # 2014 reads bytes from a table, which CaseOps shards have; here they are of the pieces
            now, last = self.data.val_tokens[1:].long(), self.data.val_tokens[:-1].long()
            counted = self.data.base_bytes_lut[now].int() + (self.data.has_leading_space_lut[now] & ~self.data.is_boundary_token_lut[last])
            self.data.val_bytes = torch.cat([torch.zeros(1, dtype=torch.int32), counted.int()])

    @contextlib.contextmanager
    def as_it_is(self):
        """What the script says to CUDA goes to the CPU; draws of adapters are this program's."""
        import torch
        module, autocast, half = self.module, torch.autocast, self.precision == "bf16"
        cast, created = module.GPT.bfloat16, module.BatchedTTTLoRA.__init__
        draws = iter(range(1000))

        def create(lora, *arguments, **options):
            created(lora, *arguments, **options)
            draw_adapters(lora, self.draw_seed, next(draws))
        torch.autocast = lambda device_type, dtype, enabled=True: autocast("cpu", dtype=dtype, enabled=enabled and half)
        module.GPT.bfloat16 = cast if half else lambda model: model
        module.BatchedTTTLoRA.__init__ = create
        try:
            yield
        finally:
            torch.autocast, module.GPT.bfloat16, module.BatchedTTTLoRA.__init__ = autocast, cast, created

    def model(self, state=None):
        """With these weights, or its artifact's."""
        with self.as_it_is():
            if state is None:
                model = self.module.deserialize(self.h, self.cpu)
            else:
                model = self.module.GPT(self.h).bfloat16()
                self.module.restore_fp32_params(model)
                model.load_state_dict(state, strict=True)
        model.looping_active = True
        return model

    # Mean nats of a token. The script counts three bytes for a second space within a piece. The record's tokenizer has no such
    # piece, the one here has two. So both losses are divided by this program's bytes, which the judge sentencepiece counts.
    def score(self, model):
        with self.as_it_is():
            return self.module.eval_val(self.h, self.cpu, self.data, model)[0]

    def adapted_score(self, model):
        with self.as_it_is():
            return self.module.eval_val_ttt_phased(self.h, model, self.cpu, self.data, model.forward_ttt)[0]

    def quantize(self, model):
        """Writes its artifact as its serialize() does, which wants a GPU and packs its own code as well."""
        import io
        import torch
        module, h = self.module, self.h
        flat = module._unbank_state_dict(model.state_dict(), h.num_layers)
        with self.as_it_is():
            seen = module.collect_hessians(model, module.ShuffledSequenceLoader(h, self.cpu), h, self.cpu, h.gptq_calibration_batches)
        stored, notes = module.gptq_mixed_quantize(flat, *(seen if isinstance(seen, tuple) else (seen,)), h)
        buffer = io.BytesIO()
        torch.save({"w": stored, "m": notes}, buffer)
        with open(h.quantized_model_path, "wb") as file:
            file.write(module._compress(buffer.getvalue(), h.compressor))


def draw_adapters(lora, seed, draw):
    import torch
    sys.path.insert(0, str(ROOT / "tests/bench"))
    from torch_ttt_peer import philox_uniform
    named = [("head", lora.lm_head_lora)]
    for kind, loras in (("q", lora.q_loras), ("k", lora.k_loras), ("v", lora.v_loras), ("attention_output", lora.o_loras),
                        ("mlp_down", lora.mlp_loras)):
        named += [(f"{kind}/{slot}", adapter) for slot, adapter in enumerate(loras or [])]
    for name, adapter in named:
        values = adapter._bound * (2 * philox_uniform(seed, f"ttt/{draw}/{name}/A", adapter.A.numel()) - 1)
        adapter.A.data = torch.from_numpy(values).float().reshape(adapter.A.shape)


def validation(tokens, bos):
    """The beginnings of the first documents, so many tokens that the script leaves none out."""
    import numpy
    begins = [*numpy.flatnonzero(tokens == bos), len(tokens)]
    lengths = [*DOCUMENTS, TOKENS - sum(DOCUMENTS)]
    parts, begins = [], [begin for begin, end in zip(begins, begins[1:]) if end - begin >= max(lengths)]
    for begin, length in zip(begins, lengths, strict=False):
        parts.append(tokens[begin:begin + length])
    joined = numpy.concatenate(parts)
    if len(joined) != TOKENS:
        raise RuntimeError("the test text has too few long documents")
    return joined


def data_folder(context):
    """Shards and tokenizer under the script's names."""
    import sentencepiece
    folder = context.scratch / "golf"
    if folder.exists():
        return folder
    shards = folder / "datasets/fineweb10B_sp512"
    shards.mkdir(parents=True)
    (folder / "tokenizers").mkdir()
    (folder / "tokenizers/fineweb_512_bpe.model").write_bytes((context.data / "tokenizer.model").read_bytes())
    bos = sentencepiece.SentencePieceProcessor(model_file=str(context.data / "tokenizer.model")).bos_id()
    for part in ("train", "val"):
        tokens = shard_tokens(sorted(context.data.glob(f"fineweb_{part}_*.bin"))[0])
        tokens = validation(tokens, bos) if part == "val" else tokens
        header = struct.pack("<256i", 20240520, 1, len(tokens), *[0] * 253)
        (shards / f"fineweb_{part}_000000.bin").write_bytes(header + tokens.tobytes())
    return folder


def trained(context, pull, precision, data):
    """A run of ours, quantised."""
    run = context.scratch / "runs" / f"{pull}-{precision}"
    (context.scratch / f"{pull}-{precision}.toml").write_text(settings(pull, precision, data))
    context.mulligan("train", f"{pull}-{precision}.toml", "--set", f"run.directory={run}", "--quiet")
    context.mulligan("quantize", run, "--quiet")
    return run


def our_score(context, command, file):
    """The score of a file in a run directory, by eval or ttt, with all digits; also one that is kept in `trials/`."""
    run = file.parent
    before = set(run.glob("trials/*.json"))
    context.mulligan(command, file, "--quiet")
    made = set(run.glob("trials/*.json")) - before
    if made:
        return read_json(made.pop())["score"]
    if command == "ttt":
        score = read_json(run / "ttt_result.json")["with_ttt"]
        return score | {"val_tokens": score["tokens"], "val_bytes": score["bytes"]}
    import json
    return json.loads((run / "evaluations.jsonl").read_text().splitlines()[-1])


def drawn_weights(script, share=1.0):
    """Weights that no training made: the script's own initial ones and a share of others."""
    import torch
    torch.manual_seed(11)
    model = script.module.GPT(script.h)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            # The two caps are stored as fp16, and a cap far away is no cap.
            scale = 0.05 if name.startswith("softcap") else 0.3 if parameter.ndim < 2 or "bank" not in name else parameter.size(-1) ** -0.5
            parameter.add_(share * scale * torch.randn_like(parameter))
    return one_dimension_at_least(model.state_dict())


def taught_weights(script, data):
    """Weights that torch.optim.AdamW trained on the script's own logits. bf16 is judged on them: a loss of drawn ones lies twice above
    that of a blind guess, and rounding alone moves it by several thousandths in either program."""
    import torch
    torch.manual_seed(11)
    model = script.model(drawn_weights(script, 0.1)).float()
    tokens = torch.from_numpy(shard_tokens(data / "datasets/fineweb10B_sp512/fineweb_train_000000.bin").astype("int64"))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    with script.as_it_is():
        for _ in range(40):
            rows = torch.stack([tokens[begin:begin + 257] for begin in torch.randint(len(tokens) - 257, (8,))])
            logits = model.forward_logits(rows[:, :-1]).float()
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten()).backward()
            optimizer.step()
    return one_dimension_at_least(model.state_dict())


def one_dimension_at_least(state):
    return {name: value.reshape(1) if value.ndim == 0 else value for name, value in state.items()}


def compared(what, ours, theirs, precision):
    """`ours`: a score of this program; `theirs`: nats of a token."""
    off = abs(ours["val_loss_nats"] - theirs) / math.log(2) * ours["val_tokens"] / ours["val_bytes"]
    return Row(f"{what}, {ours['val_bpb']:.6f} here", f"{off:.1e} bpb", f"{BOUND[precision]:g}", math.isfinite(off) and off <= BOUND[precision])


def judge_pull(context, pull, precision, module):
    import safetensors.torch
    import torch
    data = data_folder(context)
    run, who = trained(context, pull, precision, data), f"{pull}, {precision}"
    script = Script(module, precision, 1337 + (context.planted == "another-draw"))
    context.mulligan("export", run / "weights.safetensors", f"{run}.safetensors", "--dtype", "f32")
    state = safetensors.torch.load_file(f"{run}.safetensors")
    if context.planted == "transposed-lambdas":
        state["parallel_post_lambdas"] = state["parallel_post_lambdas"].transpose(1, 2).contiguous()
    theirs = script.score(script.model(state))
    yield compared(f"{who}: weights trained here, its evaluation", read_json(run / "result.json"), theirs, precision)

    context.mulligan("export", run / "artifact.mulligan", "--to", "hf", f"{run}-dequantised")
    model = script.model(safetensors.torch.load_file(f"{run}-dequantised/model.safetensors"))
    if context.planted == "code-off-by-one":
        model.qo_bank.data[0] += 0.01
    yield compared(f"{who}: an artifact made here, its evaluation", our_score(context, "eval", run / "artifact.mulligan"),
                   script.score(model), precision)
    yield compared(f"{who}: the same, its test-time training", our_score(context, "ttt", run / "artifact.mulligan"),
                   script.adapted_score(model), precision)
    if context.planted:
        return
    state = taught_weights(script, data) if precision == "bf16" else drawn_weights(script)
    safetensors.torch.save_file(state, context.scratch / "theirs.safetensors")
    context.mulligan("checkpoint", "import", "theirs.safetensors", "--config", run / "config.toml", "--out", run / "theirs.safetensors")
    model = script.model(state)
    yield compared(f"{who}: weights of its, our evaluation", our_score(context, "eval", run / "theirs.safetensors"), script.score(model), precision)
    script.quantize(model)
    artifact = context.scratch / "theirs.ptz"
    artifact.write_bytes(open(script.h.quantized_model_path, "rb").read())
    convert(artifact, context.scratch / "theirs_dequantised.safetensors")
    read = run / "theirs_dequantised.safetensors"
    context.mulligan("checkpoint", "import", "theirs_dequantised.safetensors", "--config", run / "config.toml", "--out", read)
    model = script.model()
    yield same_weights(f"{who}: an artifact of its, converted", read, model)
    yield compared(f"{who}: an artifact of its, our evaluation", our_score(context, "eval", read), script.score(model), precision)
    yield compared(f"{who}: the same, our test-time training", our_score(context, "ttt", read), script.adapted_score(model), precision)


def same_weights(what, read, model):
    """Of the script's model, whose embedding is bf16 where it computes so."""
    import safetensors.torch
    worst, theirs = 0.0, model.state_dict()
    ours = safetensors.torch.load_file(read)
    for name, value in ours.items():
        found = theirs.pop(name).reshape(value.shape)
        worst = max(worst, float((value.to(found.dtype) - found).abs().max() / found.abs().max().clamp_min(1e-9)))
    return Row(f"{what}: {len(ours)} tensors", f"{worst:.1e} of the largest, {len(theirs)} missing", "1e-06", worst <= 1e-6 and not theirs)


def judge(context):
    import torch
    torch.set_num_threads(1)  # small matrices: more threads wait for one another, on busy machines for minutes
    for precision in BOUND:
        for pull in PULLS:
            yield from judge_pull(context, pull, precision, load(pull, data_folder(context), context.scratch))
            if context.planted:
                return
