#!/usr/bin/env bash
# What keeps ranks of a training from becoming one run: another configuration or plugin file, another secret, a rank that does not come.
# It ends on all that are there, by its deadline and with a sentence that says what it is, and leaves no run directory.
source "$(dirname "${BASH_SOURCE[0]}")/ranks.bash"
make_subject

# start RANK SIZE [ARGUMENT...]: one rank, at `port`.
start() {
  local number=$1 size=$2 rank
  shift 2
  be_rank "$number" "$size" "$port"
  "${rank[@]}" train run.toml --set run.directory=made "$@" >"rank.$number" 2>&1 &
  processes[number]=$!
}
# ends WHAT CODES TEXT: the ranks end so, without being killed; the last line of each has that text.
ends() {
  local number
  ranks_end "$1: exit codes" "$2"
  for number in "${!processes[@]}"; do check_contains "$1: rank $number says so" "$3" "$(tail -n 1 rank.$number)"; done
  check_equal "$1: nothing was made" "" "$(ls made 2>/dev/null)"
  processes=()
}
processes=()

export MULLIGAN_MEET_SECONDS=10
port=$(free_port)
start 0 3
start 2 3
ends "a rank does not come" "5 5" "rank 1 of 3 did not come to rank 0 ("
unset MULLIGAN_MEET_SECONDS

port=$(free_port)
start 0 2
start 1 2 --set train.steps=7
ends "another configuration" "2 2" "train.steps: '12' and '7'"

# A process of another user has another home folder, and cannot read this one's secret.
port=$(free_port)
mkdir -p home other_home
HOME=$PWD/home start 0 2
HOME=$PWD/other_home start 1 2
ends "another user's rank" "2 2" "give all ranks the same MULLIGAN_SECRET"

# differs NAME FACT EDIT: rank 1 reads a copy of the data that EDIT changes, in which only the digests differ.
differs() {
  rm -rf other && mkdir other && cp data/*.bin data/tokenizer.model other/
  python3 -c "
import random, struct, sys
random.seed(1)
$3"
  port=$(free_port)
  start 0 2
  start 1 2 --set data.train='other/*train*.bin' --set data.validation='other/*val*.bin' --set data.tokenizer=other/tokenizer.model
  ends "$1" "2 2" "$2"
}
# swap FILE: its documents, each with the id 1 in front, stand in the other order, still what the tokenizer makes of text.
swap='
def swap(name):
    data = bytearray(open(name, "rb").read())
    words = struct.unpack(f"<{(len(data) - 1024) // 2}H", data[1024:])
    starts = [i for i, word in enumerate(words) if word == 1] + [len(words)]
    parts = [words[a:b] for a, b in zip(starts, starts[1:])]
    words = words[:starts[0]] + sum(reversed(parts), ())
    data[1024:] = struct.pack(f"<{len(words)}H", *words)
    open(name, "wb").write(data)
'
differs "other validation shards of the same length" "sha256 of the validation shards" \
  "$swap
import glob
swap(glob.glob('other/*_val_*.bin')[0])"
differs "other training shards of the same length" "sha256 of the training shards" \
  "$swap
import glob
swap(glob.glob('other/*_train_*.bin')[0])"
differs "another tokenizer" "sha256 of the tokenizer" \
  "open('other/tokenizer.model', 'ab').write(b'\\xc0\\x0c\\x00')"
# The same of an evaluation.
check "one rank trains" "$mulligan" train run.toml --set run.directory=scored --set train.steps=2 >/dev/null
rm -rf other && mkdir other && cp data/*.bin data/tokenizer.model other/
python3 -c "
import glob, random, struct
$swap
swap(glob.glob('other/*_val_*.bin')[0])"
port=$(free_port)
for number in 0 1; do
  be_rank $number 2 "$port"
  from=(data other)
  "${rank[@]}" eval scored/weights.safetensors --set data.validation="${from[number]}/*val*.bin" >rank.$number 2>&1 &
  processes[number]=$!
done
end_ranks
check_contains "an evaluation of other shards" "|${codes[*]}|" "|2 2|3 2|2 3|5 3|3 5|"
check_contains "an evaluation of other shards: it says so" "validation" "$(tail -n 1 rank.0)"
processes=()

cp "$build/lib/mulligan/plugins/mulligan_constant.so" other.so
echo >>other.so
port=$(free_port)
start 0 2
start 1 2 --set schedule.path=other.so
ends "another file of a plugin" "2 2" "sha256 of schedule 'constant'"
check_contains "another file of a plugin: both ranks are named" "rank 1 (" "$(tail -n 1 rank.0)"
