# Shared by the end-to-end scripts: runs the program that tests/run built and reports checks as "ok - WHAT" and
# "not ok - WHAT". Source it; MULLIGAN_BUILD is the build folder (default: build/release). A script whose last command succeeds ends
# with exit code 1 if a check failed, otherwise with 0.
set -uo pipefail

source "$(dirname "${BASH_SOURCE[0]}")/usual_signals.bash"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
build=${MULLIGAN_BUILD:-$root/build/release}
mulligan=$build/bin/mulligan
work=$(mktemp -d)
not_ok=0
clean_up() { rm -rf "$work"; }
trap 'code=$?; clean_up; exit $((code > 0 ? code : not_ok > 0))' EXIT
cd "$work" || exit 1

[[ -x "$mulligan" ]] || {
  echo "not ok - the program exists: $mulligan"
  exit 1
}

# pass WHAT / flunk WHAT [LINES]: one check; LINES say what was seen instead.
pass() { echo "ok - $1"; }
flunk() {
  echo "not ok - $1"
  [[ -z "${2:-}" ]] || sed 's/^/    /' <<<"$2"
  not_ok=$((not_ok + 1))
}

# check WHAT COMMAND...: the command succeeds.
check() {
  local what=$1 seen
  shift
  if seen=$("$@" 2>&1); then pass "$what"; else flunk "$what" "exit code $?: $* : $seen"; fi
}

# check_equal WHAT EXPECTED SEEN
check_equal() { if [[ "$2" == "$3" ]]; then pass "$1"; else flunk "$1" "expected '$2', saw '$3'"; fi; }

# check_contains WHAT TEXT SEEN
check_contains() { if [[ "$3" == *"$2"* ]]; then pass "$1"; else flunk "$1" "'$2' is not in: $3"; fi; }

# check_true WHAT EXPRESSION: awk arithmetic, such as '1.5 < 2'.
check_true() { if awk "BEGIN { exit !($2) }"; then pass "$1"; else flunk "$1" "$2 does not hold"; fi; }

# check_code WHAT CODE COMMAND...: it ends with that exit code. see: and what it prints is in $seen. see_all: its standard error, too.
check_code() {
  "${@:3}"
  check_equal "$1" "$2" $?
}
see() {
  seen=$("${@:3}")
  check_equal "$1" "$2" $?
}
see_all() {
  seen=$("${@:3}" 2>&1)
  check_equal "$1" "$2" $?
}

# check_refused WHAT CODE TEXT ARGUMENT...: mulligan ends with that exit code, prints exactly one line on stderr, and the
# line contains TEXT.
check_refused() {
  local what=$1 code=$2 text=$3 seen
  shift 3
  "$mulligan" "$@" >refused.out 2>refused.err
  seen=$?
  if ((seen != code)); then
    flunk "$what" "exit code $seen instead of $code: $(cat refused.err)"
  elif [[ $(wc -l <refused.err) != 1 || "$(cat refused.err)" != "mulligan: "* ]]; then
    flunk "$what" "not one sentence: $(cat refused.err)"
  elif [[ "$(cat refused.err)" != *"$text"* ]]; then
    flunk "$what" "'$text' is not in: $(cat refused.err)"
  else
    pass "$what"
  fi
}

# begin NAME ARGUMENT...: mulligan in the background, its process in $process, its output in NAME.out and NAME.err.
begin() {
  "$mulligan" "${@:2}" >"$1.out" 2>"$1.err" &
  process=$!
}
# end_by SIGNAL: sends it to $process and waits for its end; the code is the process's.
end_by() {
  kill "-$1" "$process"
  wait "$process" 2>/dev/null
}

# wait_until COMMAND...: until it succeeds. If it does not within five minutes, that is a failed check and not an endless wait.
wait_until() {
  local end=$((SECONDS + 300))
  until "$@"; do
    ((SECONDS < end)) || { flunk "within five minutes: $*"; return 1; }
    sleep 0.05
  done
}
# wait_for FILE...: until each is there and not empty.
wait_for() {
  local file
  for file; do wait_until test -s "$file"; done
}
# made_steps RUN COUNT: its metrics have so many steps.
made_steps() {
  local steps
  steps=$(grep -cs '"event":"step"' "$1/metrics.jsonl")
  ((${steps:-0} >= $2))
}
# blocks_signals PROCESS: it has taken its signals over (SIGTERM, number 15), which it does before all else.
blocks_signals() { (($(sed -n 's/^SigBlk:\t/16#/p' "/proc/$1/status" 2>/dev/null || echo 0) >> 14 & 1)); }

# amount SHORT LONG: the long form's under `tests/run --long`.
amount() { if [[ -n ${MULLIGAN_LONG_TESTS:-} ]]; then echo "$2"; else echo "$1"; fi; }

# json FILE KEY: the value of the first line "KEY": VALUE of a pretty-printed JSON file, quotes removed.
json() { sed -n "s/^ *\"$2\": *\"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}$/\1/p" "$1" | head -n 1; }

# quiet_run CONFIG NAME OPTION...: trains into runs/NAME; by $by ranks, where that is set.
quiet_run() {
  local ranks=()
  [[ -z ${by:-} ]] || ranks=(launch --nproc-per-node "$by" --)
  "$mulligan" "${ranks[@]}" train "$1" --quiet --set run.directory="runs/$2" "${@:3}" >train.log 2>&1 || flunk "train $2" "$(tail -5 train.log)"
}
# scored NAME: what weights and score that run has left.
scored() { echo "$(json "runs/$1/result.json" weights_sha256) $(json "runs/$1/result.json" val_loss_nats)"; }

# score FILE OBJECT: val_bpb of the object of that name in a pretty-printed JSON file.
score() { sed -n "/\"$2\": {/,/}/p" "$1" >part.json && json part.json val_bpb; }

# tiny_corpus FOLDER: 160 documents, 600 kB, the same whatever becomes of the repository (tests/support/tiny_text.awk).
tiny_corpus() {
  mkdir -p "$1"
  LC_ALL=C awk -v folder="$1" -f "$root/tests/support/tiny_text.awk"
}

# tiny_data OPTION...: tiny_corpus as `corpus`, prepared as `data` with 512 pieces.
tiny_data() {
  tiny_corpus corpus
  check "prepare" "$mulligan" prepare corpus --out data --vocab-size 512 "$@"
}

# letter_walk FOLDER [EVERY]: 120 documents, each a walk over 16 letters by steps of one, with a space after EVERY letters. A letter
# has two successors: no model of the next letter has a loss below ln 2. The letters' frequencies alone give ln 16.
letter_walk() {
  mkdir "$1"
  awk -v folder="$1" -v every="${2:-0}" 'BEGIN {
    state = 12345
    for (document = 1; document <= 120; ++document) {
      letter = document % 16
      for (i = 1; i <= 1000; ++i) {
        state = (state * 16807) % 2147483647
        letter = (letter + (state % 1000 < 500 ? 1 : 15)) % 16
        printf "%s%s", substr("abcdefghijklmnop", letter + 1, 1), every && i % every == 0 ? " " : "" >(folder "/" document ".txt")
      }
      close(folder "/" document ".txt")
    }
  }'
}

# data_table DATA [TOKENIZER]: [data] of what prepare made.
data_table() {
  cat <<TOML
[data]
train = "$1/fineweb_train_*.bin"
validation = "$1/fineweb_val_*.bin"
tokenizer = "${2:-$1/tokenizer.model}"
TOML
}
# one_optimizer RATE: AdamW of all parameters. Further keys of it can follow.
one_optimizer() {
  cat <<TOML
[[parameters]]
match = "*"
optimizer = "all"
[optimizer.all]
plugin = "adamw"
lr = $1
TOML
}

# small_config DATA: a configuration with every feature of the record's architecture that trains in seconds.
small_config() {
  cat <<TOML
[run]
name = "small"
$(data_table "$1")
[model]
vocabulary = 512
layers = 4
width = 64
heads = 4
kv_heads = 2
[model.rope]
dims = 8
[model.loop]
first = 1
last = 2
extra_passes = 1
start_fraction = 0.35
[model.lanes]
parallel_start = 3
[optimizer.embedding]
plugin = "adamw"
lr = 0.03
[optimizer.matrices]
plugin = "muon"
lr = 0.02
[optimizer.vectors]
plugin = "adamw"
lr = 0.01
[[parameters]]
match = "tok_emb*"
optimizer = "embedding"
[[parameters]]
match = "*_bank"
optimizer = "matrices"
[[parameters]]
match = "*"
optimizer = "vectors"
[train]
steps = 20
tokens_per_step = 1024
micro_batches = 2
sequence_length = 256
[ema]
decay = 0.8
[eval]
sequence_length = 256
packed_sequences = 4
TOML
}

# record_config DATA [FRACTION]: the same with quantisation and with test-time training on that fraction of the documents.
record_config() {
  small_config "$1"
  record_sections "${2:-}"
}
# wide_ledger: budgets that every run keeps.
wide_ledger() { printf '[ledger]\ntrain_seconds = 1000\neval_seconds = 1000\nartifact_bytes = 100000000\n'; }
record_sections() {
  cat <<TOML
[quantize]
plugin = "gptq"
calibration_batches = 2
calibration_rows = 4
[[quantize.tensors]]
match = "blocks.*.weight"
format = "int"
bits = 5
[[quantize.tensors]]
match = "*"
format = "fp16"
[ttt]
batch_documents = 2
context_tokens = 128
chunk_tokens = 64
document_fraction = ${1:-0.25}
[ttt.adapters]
plugin = "doc_lora"
rank = 4
alpha = 4.0
[ttt.optimizer]
plugin = "adamw"
lr = 0.002
beta1 = 0.0
TOML
}

# finish: ends the script before its last command.
finish() { exit $((not_ok > 0)); }
