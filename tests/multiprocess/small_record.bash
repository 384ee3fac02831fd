# The record in small, for the scripts in this folder. Source after cli_checks.bash.

# small_record: the record's configuration with small extents, and steps in place of its clock. Its data is that of make_subject.
small_record() {
  cat <<TOML
extends = "$root/configs/records/pr1886.toml"
[run]
threads = 1
[data]
train = "data"
validation = "data"
tokenizer = "data/tokenizer.model"
[model]
vocabulary = 300
layers = 5
width = 32
heads = 2
kv_heads = 1
head_width = 16
mlp_hidden = 64
xsa_last_layers = 5
[model.rope]
dims = 8
[model.loop]
first = 1
last = 2
extra_passes = 2
start_fraction = 0.5
[model.lanes]
parallel_start = 3
[train]
budget_seconds = 0.0
reserve_seconds = 0.0
steps = 4
tokens_per_step = 256
micro_batches = 2
sequence_length = 128
log_every = 1
[train.warmup]
steps = 1
[doctor]
level = "off"
[checkpoint]
every_steps = 2
at_end = false
[eval]
sequence_length = 128
packed_sequences = 2
[quantize]
calibration_batches = 1
calibration_rows = 2
calibration_shard_stride = 1
[ttt]
batch_documents = 1
context_tokens = 128
chunk_tokens = 64
prefix_documents = 2
phases = 1
lanes = 2
[ttt.adapters]
rank = 4
alpha = 4.0
[ttt.base]
chunk_tokens = 128
batch_rows = 2
TOML
}
