"""The model of mulligan's family "record" for transformers (trust_remote_code), float32 or bfloat16, without a key/value cache.

Written by `mulligan export --to hf`. config.json holds mulligan's [model] keys under "model"; tensors have the names and shapes
of mulligan's weights. Attention stays inside documents, which begin with config.bos_token_id.
"""
import math

import torch
import torch.nn.functional as F
from transformers import GenerationMixin, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutputWithPast


class MulliganConfig(PretrainedConfig):
    model_type = "mulligan"

    def __init__(self, model=None, **options):
        self.model = model or {}  # "layers", "rope.dims", ...: docs/configuration.md of mulligan
        for name, key in (("vocab_size", "vocabulary"), ("hidden_size", "width"), ("num_hidden_layers", "layers"),
                          ("num_attention_heads", "heads"), ("num_key_value_heads", "kv_heads")):
            options[name] = self.model.get(key)
        super().__init__(**options)


class Shape:
    """The [model] keys as attributes: rope.dims is rope_dims. The gate is the dense or the sparse one."""

    def __init__(self, model):
        for key, value in model.items():
            setattr(self, key.replace(".", "_"), value)
        self.norm_eps = self.norm_eps or torch.finfo(torch.float32).eps
        self.gate_window = self.width if self.attention_gate else self.sparse_gate_window
        self.gate_scale = 1.0 if self.attention_gate else self.sparse_gate_scale


def norm(x, eps):
    return F.rms_norm(x.float(), (x.size(-1),), eps=eps).to(x.dtype)


def parameter(*shape):
    return torch.nn.Parameter(torch.empty(*shape))


class Attention(torch.nn.Module):
    def __init__(self, c):
        super().__init__()
        if c.q_gain:
            self.q_gain = parameter(c.heads)
        if c.gate_window:
            self.attn_gate_w = parameter(c.heads, c.gate_window)


class Block(torch.nn.Module):
    def __init__(self, c):
        super().__init__()
        self.attn_scale, self.mlp_scale = parameter(c.width), parameter(c.width)
        if c.residual_mix:
            self.resid_mix = parameter(2, c.width)
        self.attn = Attention(c)


class SmearGate(torch.nn.Module):
    def __init__(self, c):
        super().__init__()
        self.weight = parameter(1, c.smear_gate_window)


class MulliganForCausalLM(PreTrainedModel, GenerationMixin):
    config_class = MulliganConfig
    base_model_prefix = ""
    _no_split_modules = ["Block"]

    def __init__(self, config):
        super().__init__(config)
        c = self.shape = Shape(config.model)
        self.tok_emb = torch.nn.Embedding(c.vocabulary, c.width)
        self.qo_bank = parameter(2 * c.layers, c.width, c.width)
        self.kv_bank = parameter(2 * c.layers, c.kv_heads * c.head_width, c.width)
        self.mlp_up_bank = parameter(c.layers, c.mlp_hidden, c.width)
        self.mlp_down_bank = parameter(c.layers, c.width, c.mlp_hidden)
        self.blocks = torch.nn.ModuleList(Block(c) for _ in range(c.layers))
        order = list(range(c.layers))
        order = order[:c.loop_first] + order[c.loop_first:c.loop_last + 1] * (1 + c.loop_extra_passes) + order[c.loop_last + 1:]
        self.encoder, self.decoder = order[:len(order) // 2], order[len(order) // 2:]
        merges = min(len(self.encoder), len(self.decoder)) if c.skip_weights else 0
        if merges:
            self.skip_weights = parameter(merges, c.width)
        if merges and c.skip_gates:
            self.skip_gates = parameter(merges, c.width)
        self.merges = merges
        if c.lanes_parallel_start:
            self.parallel_post_lambdas = parameter(c.layers, 2, 2)
            self.parallel_resid_lambdas = parameter(c.layers, 2)
        if not c.tied_head:
            self.lm_head = torch.nn.Linear(c.width, c.vocabulary, bias=False)
        if c.smear_gate_window:
            self.smear_gate, self.smear_lambda = SmearGate(c), parameter(1)
        if c.asymmetric_softcap_enabled:
            self.softcap_pos, self.softcap_neg = parameter(1), parameter(1)
        self.post_init()

    def _init_weights(self, module):
        pass  # from_pretrained fills every parameter

    def get_input_embeddings(self):
        return self.tok_emb

    def get_output_embeddings(self):
        return None if self.shape.tied_head else self.lm_head

    def prepare_inputs_for_generation(self, input_ids, **_):
        return {"input_ids": input_ids}

    def forward(self, input_ids, labels=None, **_):
        """logits [batch, tokens, vocabulary] in float32; with labels also the mean loss of each next token in nats."""
        c = self.shape
        positions = torch.arange(input_ids.size(1), device=input_ids.device)
        documents = (input_ids == self.config.bos_token_id).cumsum(-1)
        seen = (documents[:, :, None] == documents[:, None, :]) & (positions[:, None] >= positions[None, :])
        context = dict(mask=seen[:, None], turn=self.rotary(positions))
        x = x0 = norm(self.smeared(self.tok_emb(input_ids), input_ids), c.norm_eps)
        skips, lanes = [], None
        for layer in self.encoder:
            x = self.block(x, x0, layer, context)
            skips.append(x)
        for entry, layer in enumerate(self.decoder):
            if lanes is None and 0 < c.lanes_parallel_start <= layer:
                lanes = (x, x)
            merged = x if lanes is None else lanes[0]
            if entry < self.merges:
                merged = self.merge(merged, skips.pop(), entry)
            if lanes is None:
                x = self.block(merged, x0, layer, context)
            else:
                lanes = self.lane_block(merged, lanes[1], x0, layer, context)
        if lanes is not None:
            x = {"mean": (lanes[0] + lanes[1]) / 2, "attention": lanes[0], "mlp": lanes[1]}[c.lanes_final]
        z = F.linear(norm(x, c.norm_eps), self.tok_emb.weight if c.tied_head else self.lm_head.weight).float()
        if c.asymmetric_softcap_enabled:
            cap = torch.where(z > 0, self.softcap_pos.float(), self.softcap_neg.float())
            z = cap * torch.tanh(z / cap)
        elif c.softcap:
            z = c.softcap * torch.tanh(z / c.softcap)
        loss = None if labels is None else F.cross_entropy(z[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
        return CausalLMOutputWithPast(loss=loss, logits=z)

    def smeared(self, x, ids):
        c = self.shape
        if not c.smear_gate_window:
            return x
        gate = self.smear_lambda * torch.sigmoid(F.linear(x[..., :c.smear_gate_window], self.smear_gate.weight))
        before = F.pad(x[:, :-1], (0, 0, 1, 0))
        begins = (ids == c.smear_gate_document_start)[..., None]
        return torch.where(begins, x, x + (gate * before).to(x.dtype))

    def rotary(self, positions):
        c = self.shape
        exponent = torch.arange(0, c.rope_dims, 2, dtype=torch.float32, device=positions.device) / c.rope_dims
        frequency = 1.0 / torch.pow(torch.tensor(c.rope_base, dtype=torch.float32, device=positions.device), exponent)
        if c.rope_table == "bf16":
            frequency = frequency.bfloat16().float()
        angle = positions.float()[:, None] * frequency
        return angle.cos(), angle.sin()

    def rotate(self, x, turn):
        """x [batch, heads, tokens, head width]: pairs (j, j + dims/2) of the first dims."""
        half = self.shape.rope_dims // 2
        cos, sin = turn
        a, b, rest = x[..., :half].float(), x[..., half:2 * half].float(), x[..., 2 * half:]
        return torch.cat([(a * cos + b * sin).to(x.dtype), (b * cos - a * sin).to(x.dtype), rest], dim=-1)

    def heads(self, n, weight, count):
        return F.linear(n, weight).view(*n.shape[:2], count, self.shape.head_width).transpose(1, 2)

    def attention(self, n, layer, context):
        c, own = self.shape, self.blocks[layer].attn
        q = self.heads(n, self.qo_bank[layer], c.heads)
        k = self.heads(n, self.kv_bank[layer], c.kv_heads)
        v = self.heads(n, self.kv_bank[c.layers + layer], c.kv_heads).repeat_interleave(c.heads // c.kv_heads, dim=1)
        if c.qk_norm:
            q, k = norm(q, c.norm_eps), norm(k, c.norm_eps)
        q, k = self.rotate(q, context["turn"]), self.rotate(k, context["turn"])
        if c.q_gain:
            q = q * own.q_gain.to(q.dtype)[:, None, None]
        k = k.repeat_interleave(c.heads // c.kv_heads, dim=1)
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=context["mask"])
        if layer >= c.layers - c.xsa_last_layers:
            u = F.normalize(v.float(), dim=-1)
            out = (out.float() - (out.float() * u).sum(-1, keepdim=True) * u).to(out.dtype)
        if c.gate_window:
            gate = torch.sigmoid(c.gate_scale * F.linear(n[..., :c.gate_window], own.attn_gate_w.to(n.dtype)))
            out = out * gate.transpose(1, 2)[..., None]
        return F.linear(out.transpose(1, 2).flatten(2), self.qo_bank[c.layers + layer])

    def mlp(self, n, layer):
        bent = F.leaky_relu(F.linear(n, self.mlp_up_bank[layer]), self.shape.mlp_negative_slope)
        return F.linear(bent.square(), self.mlp_down_bank[layer])

    def entering(self, x, x0, layer):
        """What a block reads: the stream, mixed with the embedding, and its scaled norm."""
        if self.shape.residual_mix:
            mix = self.blocks[layer].resid_mix.to(x.dtype)
            x = mix[0] * x + mix[1] * x0
        return x, self.scaled_norm(x, layer)

    def scaled_norm(self, x, layer):
        return norm(x, self.shape.norm_eps) * (1 / math.sqrt(layer + 1) if self.shape.ln_scale else 1.0)

    def block(self, x, x0, layer, context):
        own = self.blocks[layer]
        y, n = self.entering(x, x0, layer)
        y = y + own.attn_scale.to(x.dtype) * self.attention(n, layer, context)
        return y + own.mlp_scale.to(x.dtype) * self.mlp(self.scaled_norm(y, layer), layer)

    def lane_block(self, lane0, lane1, x0, layer, context):
        own = self.blocks[layer]
        rho, post = self.parallel_resid_lambdas[layer].to(lane0.dtype), self.parallel_post_lambdas[layer].to(lane0.dtype)
        a = own.attn_scale.to(lane0.dtype) * self.attention(self.entering(lane0, x0, layer)[1], layer, context)
        m = own.mlp_scale.to(lane0.dtype) * self.mlp(self.scaled_norm(lane1, layer), layer)
        return tuple(rho[i] * (lane0, lane1)[i] + post[0, i] * a + post[1, i] * m for i in (0, 1))

    def merge(self, x, skip, entry):
        skip = self.skip_weights[entry].to(x.dtype) * skip
        if not self.shape.skip_gates:
            return x + skip
        return torch.lerp(skip, x, torch.sigmoid(self.skip_gates[entry]).to(x.dtype))
