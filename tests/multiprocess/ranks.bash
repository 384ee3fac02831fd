# Several ranks of mulligan on this machine, for the scripts in this folder, and the checks of tests/end_to_end.
source "$(dirname "${BASH_SOURCE[0]}")/../end_to_end/cli_checks.bash"

# make_subject: text, data and a configuration `run.toml` of 12 steps of four micro-batches, with cut banks.
make_subject() {
  mkdir -p text
  for i in $(seq 1 60); do
    for line in $(seq 1 12); do echo "document $i has line $line of words that a small model may learn, $((i * line % 7)) times"; done \
      >"text/$i.txt"
  done
  "$mulligan" prepare text --out data --vocab-size 300 --validation-documents 6 >/dev/null || exit 1
  cat >run.toml <<'TOML'
[run]
threads = 1
[data]
train = "data"
validation = "data"
tokenizer = "data/tokenizer.model"
[model]
vocabulary = 300
layers = 4
width = 32
heads = 4
kv_heads = 2
mlp_hidden = 64
[schedule]
plugin = "constant"
[optimizer.matrices]
plugin = "muon"
lr = 0.02
[optimizer.rest]
plugin = "adamw"
lr = 0.01
[[parameters]]
match = "*_bank"
optimizer = "matrices"
communication = "sharded"
[[parameters]]
match = "*"
optimizer = "rest"
[train]
steps = 12
micro_batches = 4
tokens_per_step = 512
sequence_length = 64
log_every = 1
[train.warmup]
steps = 1
[checkpoint]
every_steps = 3
at_end = true
[eval]
sequence_length = 64
packed_sequences = 2
TOML
}

# Options for the emulated cuda device, with a model that is small enough for it; and for ranks on it over nccl. Its stream and
# its library are the stubs of tests/stub.
emulated=(--set backend.plugin=cuda --set backend.device=emulated --set model.layers=2 --set model.width=16
  --set model.mlp_hidden=32 --set train.steps=3 --set train.tokens_per_step=128 --set train.sequence_length=32
  --set data.validation=)
over_nccl=("${emulated[@]}" --set backend.emulated_driver="$build/tests/stub/libcuda.so.1"
  --set communicator.plugin=nccl --set communicator.library="$build/tests/stub/libnccl.so.2")

# The same, quicker, for faults.
tiny_over_nccl=("${over_nccl[@]}" --set run.determinism=world --set train.warmup.steps=0 --set train.log_every=1
  --set train.tokens_per_step=64 --set train.sequence_length=16)

# make_act: a rank act.sh, which does what its variable says (RANK_2="exit 3") once all are there. It writes to said_RANK.
make_act() {
  cat >act.sh <<'SH'
#!/usr/bin/env bash
action=RANK_$RANK
echo "$MULLIGAN_RESTART_COUNT $MASTER_ADDR:$MASTER_PORT $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $GROUP_RANK" >>said_$RANK
# None acts before all are there.
for ((rank = 0; rank < WORLD_SIZE; ++rank)); do
  until grep -qs "^$MULLIGAN_RESTART_COUNT " said_$rank; do sleep 0.05; done
done
eval "${!action:-true}"
SH
  chmod +x act.sh
}

# A free port below those that the system gives away. Ranks try it before their rank 0 listens there. It must not be a port of
# another run's ranks, which take the first connection for their peer.
free_port() {
  python3 -c '
import random, socket
while True:
    with socket.socket() as tried:
        try:
            tried.bind(("127.0.0.1", random.randrange(10000, 28000)))
        except OSError:
            continue
        print(tried.getsockname()[1])
        break'
}

# be_rank RANK SIZE PORT: sets `rank`, the words that make a command that rank: "${rank[@]}" mulligan ... & has its process in $!.
be_rank() {
  rank=(env RANK="$1" WORLD_SIZE="$2" LOCAL_RANK="$1" LOCAL_WORLD_SIZE="$2" MASTER_ADDR=127.0.0.1 MASTER_PORT="$3" "$mulligan")
}

# spawn_ranks NAME SIZE COMMAND...: all ranks of a command in the background, their processes in processes[]; output of rank R in NAME.R.
spawn_ranks() {
  local name=$1 size=$2 port number rank
  shift 2
  port=$(free_port)
  processes=()
  for ((number = 0; number < size; number++)); do
    be_rank "$number" "$size" "$port"
    "${rank[@]}" "$@" >"$name.$number" 2>&1 &
    processes+=($!)
  done
}
# run_ranks NAME SIZE COMMAND...: the same to the end. Succeeds when all do.
run_ranks() {
  local failed=0 process processes
  spawn_ranks "$@"
  for process in "${processes[@]}"; do wait "$process" || failed=1; done
  ((failed == 0)) || tail -n 3 "$1".[0-9]*
  return $failed
}

# train_ranks SIZE DIRECTORY ARGUMENT...: all ranks of a training; output of rank R in train_SIZE.R, of all in train_SIZE.out.
train_ranks() {
  local failed=0
  run_ranks "train_$1" "$1" train run.toml --set run.directory="$2" "${@:3}" || failed=1
  cat "train_$1".[0-9]* >"train_$1.out"
  return $failed
}

# begin_ranks SIZE DIRECTORY ARGUMENT...: ranks of a training in the background, output in rank.R; returns when they have made steps.
begin_ranks() {
  spawn_ranks rank "$1" train run.toml --set run.directory="$2" "${@:3}"
  wait_until made_steps "$2" 3 || tail -n 3 rank.*
}

# end_ranks: waits for all of them; exit codes in codes[]. One that does not end within five minutes, on whatever machine, is killed.
end_ranks() {
  local until=$((SECONDS + 300)) process code
  codes=()
  for process in "${processes[@]}"; do
    while kill -0 "$process" 2>/dev/null && ((SECONDS < until)); do sleep 0.1; done
    if kill -0 "$process" 2>/dev/null; then kill -KILL "$process"; fi
    wait "$process" 2>/dev/null
    code=$?
    codes+=("$code")
  done
}

# ranks_end WHAT CODES: waits for all of them, which end with these exit codes.
ranks_end() {
  end_ranks
  check_equal "$1" "$2" "${codes[*]}"
}

# faulty NAME LIBRARY_FAULTS DRIVER_FAULTS OPTION...: two ranks in the background in a folder of that name, with these faults in the
# midst of training: groups of transfers, six to a step, or pieces of work go well before. Exit codes are in NAME/codes.
faulty() {
  local name=$1 library=$2 driver=$3
  shift 3
  mkdir "$name"
  (
    cd "$name" && ln -s ../data ../run.toml . &&
      export MULLIGAN_STUB_NCCL=$library MULLIGAN_STUB_DRIVER=$driver
    spawn_ranks rank 2 train run.toml --set run.directory=run "${tiny_over_nccl[@]}" --set train.steps=300 "$@"
    [[ $name != killed ]] || { wait_until made_steps run 3 && kill -KILL "${processes[1]}"; }
    end_ranks
    echo "${codes[*]}" >codes
  ) 2>/dev/null &
}
# ended NAME WHAT CODES TEXT: so it went on both ranks, after some steps. CODES: or others, "5 1|1 5".
ended() {
  local number
  check_contains "$2: exit codes" "|$(cat "$1/codes")|" "|$3|"
  for number in 0 1; do
    [[ $number == 1 && $3 == *137 ]] || check_contains "$2: rank $number says it" "$4" "$(tail -n 1 "$1/rank.$number")"
  done
  in_the_midst "$1" "$2"
}
in_the_midst() { check_true "$2: in the midst of training" "0$(grep -cs '"event":"step"' "$1/run/metrics.jsonl") > 0"; }
# stuck NAME WHAT RANK...: both ranks have ended with one verdict, that a rank is stuck, or the run ("run"), and with the exit codes of
# that verdict. The ranks are those that keep others waiting: which of them is noticed, and in what, depends on the moment.
stuck() {
  local name=$1 what=$2 said culprit number code
  shift 2
  said=$(tail -n 1 "$name/rank.0" | grep -oE '(the run|rank [01] \([^)]*\)[^:]*) is stuck: (it has not moved|nothing has moved) for [0-9]+ s.*')
  culprit=$(grep -oE '^(the run|rank [01])' <<<"$said")
  culprit=${culprit#* }
  check_contains "$what: the verdict is true" " ${culprit:-none of '$(tail -n 1 "$name/rank.0")'} " " $* "
  check_contains "$what: rank 1 tells the same" "${said:-a verdict}" "$(tail -n 1 "$name/rank.1")"
  for number in 0 1; do
    code=5
    [[ $culprit != "$number" ]] || code=1
    check_equal "$what: exit code of rank $number" $code "$(cut -d' ' -f$((number + 1)) "$name/codes")"
  done
  in_the_midst "$name" "$what"
}

# files_of ID: the environment of every process of the launch with that id. process_of ID RANK: the process of that rank.
files_of() { grep -lsz "^MULLIGAN_RUN_ID=$1$" /proc/[0-9]*/environ; }
process_of() {
  files_of "$1" | while read -r file; do
    grep -qsz "^RANK=$2$" "$file" && tr -dc 0-9 <<<"$file" && break
  done
}

# resumes_to WHAT DIRECTORY WEIGHTS ARGUMENT...: two ranks continue it, to these weights.
resumes_to() {
  local what=$1 directory=$2 expected=$3
  shift 3
  check "$what: it resumes" train_ranks 2 "$directory" "$@" --resume
  check_equal "$what: to the same weights" "$expected" "$(weights "$directory")"
  check_equal "$what: no temporary files are left" "" "$(find "$directory" -name '.*' -not -name '.lock' -printf '%f ')"
}

# Of a run directory: its losses step by step, the digest of its weights, its score.
losses() { python3 -c '
import json, sys
steps = {}
for line in open(sys.argv[1] + "/metrics.jsonl"):
    event = json.loads(line)
    if event["event"] == "step": steps[event["step"]] = event["loss_nats"]
for step in sorted(steps): print(step, repr(steps[step]))' "$1"; }
weights() { json "$1/result.json" weights_sha256; }
score() { json "$1/result.json" val_loss_nats; }
# trained RUN: its losses, its weights.
trained() { losses "$1" && weights "$1"; }
# largest_difference A B: of the losses of two runs.
largest_difference() {
  paste <(losses "$1") <(losses "$2") | awk '{ d = $2 - $4; if (d < 0) d = -d; if (d > most) most = d } END { printf "%.9f", most }'
}
