"""Of the judge record_script: which scripts, their settings (environment) and the same ones of this program, at a small size."""

# Path in the pull request, and sha256.
PULLS = {
    "1886": ("records/track_10min_16mb/2026-04-28_FusedCE_WD20_PolarNS_RunPod_1.06957/train_gpt.py",
             "106a754f5e7490e827b5d97f04ab5e94f8130f249d561372eeba6e01c658b0d3"),
    "2014": ("records/track_10min_16mb/2026-04-30_SP8192_CaseOps_Progressive3k_ShortDocTTT/train_gpt.py",
             "a496bb37e25bc7ccaa30c4d89253376b4bc8929ffcd1d3f464367acf13fcebc9"),
}

# Matrices of more than 65,536 numbers, which the scripts quantise, and smaller ones (k and v), which they store as fp16.
SMALL = {
    "VOCAB_SIZE": "512", "NUM_LAYERS": "4", "XSA_LAST_N": "4", "MODEL_DIM": "288", "NUM_HEADS": "4", "NUM_KV_HEADS": "2", "MLP_MULT": "1.0",
    "ROPE_DIMS": "8", "NUM_LOOPS": "1", "LOOP_START": "1", "LOOP_END": "2", "PARALLEL_START_LAYER": "3", "QK_GAIN_INIT": "1.5",
    "TRAIN_SEQ_LEN": "256", "ROPE_TRAIN_SEQ_LEN": "256", "EVAL_SEQ_LEN": "256", "VAL_BATCH_TOKENS": "8192", "TRAIN_BATCH_TOKENS": "8192",
    "GPTQ_CALIBRATION_BATCHES": "2", "COMPRESSOR": "brotli", "FUSED_CE_ENABLED": "1",
    "TTT_LORA_RANK": "8", "TTT_LORA_ALPHA": "12", "TTT_LORA_LR": "0.002", "TTT_BATCH_SIZE": "3", "TTT_CHUNK_SIZE": "64",
    "TTT_EVAL_SEQ_LEN": "128", "TTT_WARM_START_A": "1", "PHASED_TTT_PREFIX_DOCS": "4", "GLOBAL_TTT_CHUNK_TOKENS": "1024",
    "GLOBAL_TTT_BATCH_SEQS": "2", "GLOBAL_TTT_LR": "0.01",
}
ENVIRONMENT = {
    "1886": SMALL | {"TTT_WEIGHT_DECAY": "2.0", "PHASED_TTT_NUM_PHASES": "2", "GATED_ATTN_ENABLED": "1"},
    "2014": SMALL | {
        "GATED_ATTN_ENABLED": "0", "GATED_ATTN_QUANT_GATE": "1", "SPARSE_ATTN_GATE_ENABLED": "1", "SPARSE_ATTN_GATE_SCALE": "0.5",
        "SMEAR_GATE_ENABLED": "1", "GATE_WINDOW": "12", "ASYM_LOGIT_RESCALE": "1", "LQER_ENABLED": "1", "LQER_RANK": "4", "LQER_TOP_K": "2",
        "LQER_ASYM_ENABLED": "1", "LQER_ASYM_GROUP": "64", "AWQ_LITE_ENABLED": "1", "AWQ_LITE_BITS": "8", "AWQ_LITE_GROUP_TOP_K": "1",
        "AWQ_LITE_GROUP_SIZE": "64", "EMBED_BITS": "7", "TTT_MASK": "no_qv", "TTT_WEIGHT_DECAY": "0.5", "TTT_BETA2": "0.99",
        "TTT_LOCAL_LR_MULT": "0.75", "PHASED_TTT_NUM_PHASES": "1", "TTT_SHORT_SCORE_FIRST_ENABLED": "1",
        "TTT_SHORT_SCORE_FIRST_STEPS": "400:16,1200:32"},
}

BASE = """[run]
name = "judged"
seed = 1337
[data]
train = "{data}/datasets/fineweb10B_sp512/fineweb_train_*.bin"
validation = "{data}/datasets/fineweb10B_sp512/fineweb_val_*.bin"
tokenizer = "{data}/tokenizers/fineweb_512_bpe.model"
[model]
vocabulary = 512
layers = 4
width = 288
heads = 4
kv_heads = 2
mlp_hidden = 288
xsa_last_layers = 4
q_gain = 1.5
attention_gate = {dense_gate}
{elements}
[model.rope]
dims = 8
table = "{table}"
[model.loop]
first = 1
last = 2
extra_passes = 1
start_fraction = 0.35
[model.lanes]
parallel_start = 3
[loss]
plugin = "softcap_ce"
[optimizer.embedding]
plugin = "adamw"
lr = 0.03
[optimizer.matrices]
plugin = "muon"
lr = 0.02
[optimizer.vectors]
plugin = "adamw"
lr = 0.05
[[parameters]]
match = "tok_emb*"
optimizer = "embedding"
master_dtype = "{embedding}"
[[parameters]]
match = "*_bank"
optimizer = "matrices"
{unused}
[[parameters]]
match = "*"
optimizer = "vectors"
[train]
steps = 8
tokens_per_step = 1024
micro_batches = 2
sequence_length = 256
compute_dtype = "{compute}"
[eval]
sequence_length = 256
packed_sequences = 4
[quantize]
plugin = "gptq"
calibration_batches = 2
calibration_rows = 4
{choices}
[[quantize.tensors]]
match = "tok_emb.weight"
format = "int"
bits = 7
[[quantize.tensors]]
match = "*.attn_gate_w"
{gate_format}
[[quantize.tensors]]
match = "blocks.*.weight"
format = "int"
bits = 6
[[quantize.tensors]]
match = "*"
format = "fp16"
[ttt]
batch_documents = 3
context_tokens = 128
chunk_tokens = 64
{chunks}
prefix_documents = 4
phases = {phases}
base_keeps_dtypes = true
on_collapse = "off"
[ttt.adapters]
plugin = "doc_lora"
rank = 8
alpha = 12.0
warm_start_a = true
{adapters}
[ttt.optimizer]
plugin = "adamw"
lr = 0.002
beta1 = 0.0
eps = 1e-10
{adapter_optimizer}
[ttt.base]
plugin = "global_sgd"
lr = 0.01
momentum = 0.9
clip_norm = 1.0
chunk_tokens = 1024
batch_rows = 2
"""
OF_PULL = {
    "1886": dict(dense_gate="true", elements="", unused="", choices="", gate_format='format = "int8_row"', chunks="", phases=2, adapters="",
                 adapter_optimizer="beta2 = 0.999\nweight_decay = 2.0"),
    "2014": dict(dense_gate="false", elements="""[model.smear_gate]
window = 12
document_start = {bos}
[model.sparse_gate]
window = 12
scale = 0.5
[model.asymmetric_softcap]
enabled = true""", unused='[[parameters]]\nmatch = "softcap_*"\noptimizer = "none"', choices="""protected_groups = 1
protected_size = 64
protected_bits = 8
corrected_tensors = 2
correction_rank = 4
correction_group = 64
plain_range = "largest\"""", gate_format='format = "int"\nbits = 8', chunks="chunk_limits = [399, 1199]\nchunk_sizes = [16, 32]", phases=1,
                 adapters="q = false\nv = false", adapter_optimizer="lr_multiplier = 0.75\nbeta2 = 0.99\nweight_decay = 0.5"),
}


def settings(pull, precision, data, bos=1):
    """A configuration of this program."""
    half = precision == "bf16"
    names = OF_PULL[pull] | {"elements": OF_PULL[pull]["elements"].format(bos=bos)}
    return BASE.format(data=data, table=precision, compute=precision, embedding="bf16" if half else "fp32", **names)
