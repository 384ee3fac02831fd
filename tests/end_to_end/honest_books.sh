#!/usr/bin/env bash
# What a run may claim: weights that were learned before the clock starts, results that were edited, weights of other runs and libraries under other names are found; honest runs are not disturbed.
# shellcheck source=tests/end_to_end/cli_checks.bash
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

flawed=$build/tests/flawed_plugins
tiny_corpus corpus
check "prepare" "$mulligan" prepare corpus --out data --vocab-size 512 --validation-fraction 0.05
{
  small_config "$work/data"
  record_sections | sed "s|^document_fraction = .*|document_fraction = 1.0|"
  printf '[ledger]\nrules = "strict"\ntrain_seconds = 600\n'
} >strict.toml
value() { json "$1/result.json" val_bpb; }
warm=(--set train.warmup.steps=20 --set train.warmup.keep_muon_momentum=true --set train.steps=40)

# Training before the clock starts. hoard HOW: options for a run whose optimisers keep the weights of the warm-up.
hoard() {
  arguments=(--set optimizer.embedding.lr=0.003 --set optimizer.matrices.lr=0.002 --set optimizer.vectors.lr=0.002)
  for group in embedding matrices vectors; do
    arguments+=(--set "optimizer.$group.plugin=hoarding_optimizer" --set "optimizer.$group.how=\"$1\"")
    arguments+=(--set "optimizer.$group.path=$flawed/mulligan_hoarding_optimizer.so")
  done
}
check "honest optimisers under strict rules, Muon's momentum kept" "$mulligan" train strict.toml "${warm[@]}" --set run.directory=honest
hoard not_at_all
check "a plugin built outside of the tree" "$mulligan" train strict.toml "${warm[@]}" "${arguments[@]}" --set run.directory=outside
hoard state
check_refused "3000 steps of warm-up" 2 "train.warmup.steps = 3000" train strict.toml "${arguments[@]}" \
  --set train.warmup.steps=3000 --set train.warmup.keep_muon_momentum=true --set run.directory=long
check "a state of a foreign plugin that survives warm-up" "$mulligan" train strict.toml "${warm[@]}" "${arguments[@]}" --set run.directory=state
check_equal "does not under strict rules" "$(value outside)" "$(value state)"
for how in memory second_step; do
  hoard $how
  check_refused "weights kept in $how" 1 "times as far as steps behind it" train strict.toml "${warm[@]}" "${arguments[@]}" \
    --set train.warmup.steps=50 --set run.directory=$how
done
check_equal "and there is no result" "" "$(find memory second_step -name result.json)"
check_refused "weights that another run has trained" 2 "init.from" train strict.toml --set init.from=honest/weights.safetensors \
  --set run.directory=later
check "a run under open rules" "$mulligan" train strict.toml --set ledger.rules=open --set checkpoint.every_steps=10 --set run.directory=open
check_refused "does not become strict behind its first steps" 2 'written under ledger.rules = "open"' train strict.toml --resume \
  --set run.directory=open

"$mulligan" train strict.toml --set run.directory=stopped --set train.steps=60 >stopped.out 2>&1 &
process=$!
wait_for stopped/metrics.jsonl
kill -STOP $process
sleep 2
kill -CONT $process
wait $process
check_equal "a run that was stopped for a while" 0 $?

# Libraries that are loaded before the program, whatever they do; as a variable says it, and as the process shows it.
LD_PRELOAD=$flawed/mulligan_flawed_loss.so check_refused "a preloaded library" 1 "was loaded with the program, which does not need it" \
  train strict.toml --set run.directory=preloaded --set train.steps=2
check_contains "is told before training" "warning: code that is not the program's" "$(cat refused.out)"
LD_PRELOAD=$flawed/mulligan_flawed_loss.so check_refused "a preloaded library, when weights are scored" 1 "LD_PRELOAD is" eval honest
LD_PRELOAD=$flawed/mulligan_flawed_loss.so check "open rules take it" "$mulligan" train strict.toml --set ledger.rules=open \
  --set run.directory=preloaded_open --set train.steps=2
LD_LIBRARY_PATH=$build/lib "$mulligan" train strict.toml --set run.directory=elsewhere_libraries --set train.steps=2 >path.out 2>&1
check_equal "LD_LIBRARY_PATH is no fault" 0 $?
check_contains "and is named" "LD_LIBRARY_PATH = '$build/lib'" "$(cat path.out)"

# Training text that is another once it was looked at: the same file written to, and a link that leads elsewhere.
cp -r data swapped
ln -s "$work/data" linked
for way in swapped linked; do
  "$mulligan" train strict.toml --set run.directory=read_$way --set train.steps=150 --set "data.train=$work/$way/fineweb_train_*.bin" \
    >$way.out 2>&1 &
  process=$!
  wait_for read_$way/metrics.jsonl
  if [[ $way == swapped ]]; then
    dd if=data/fineweb_train_000000.bin of=swapped/fineweb_train_000000.bin conv=notrunc status=none
  else
    cp -r data elsewhere && ln -sfn "$work/elsewhere" linked
  fi
  wait $process
  check_equal "training text that was $way while it was read" 1 $?
  check_contains "is named" "was written to or replaced" "$(cat $way.out)"
done

# The same through a mapping, which changes no time of a file in memory; the text is put back before the end.
if [[ -w /dev/shm ]]; then
  memory=$(mktemp -d /dev/shm/mulligan_test.XXXXXX)
  cp -r data/. "$memory"
  "$mulligan" train strict.toml --set run.directory=read_mapped --set train.steps=400 --set "data.train=$memory/fineweb_train_*.bin" \
    >mapped.out 2>&1 &
  process=$!
  python3 - "$memory/fineweb_train_000000.bin" read_mapped/metrics.jsonl <<'END'
import mmap, os, sys, time
with open(sys.argv[1], "r+b") as file:
    shard = mmap.mmap(file.fileno(), 0)
own, times = shard[1024:], os.stat(sys.argv[1])
for _ in range(300):
    if os.path.exists(sys.argv[2]) and os.path.getsize(sys.argv[2]): break
    time.sleep(0.1)
shard[1024:] = own[2:] + own[:2]
time.sleep(2)
shard[1024:] = own
after = os.stat(sys.argv[1])
print((times.st_mtime_ns, times.st_ctime_ns) == (after.st_mtime_ns, after.st_ctime_ns), file=open("times.out", "w"))
END
  wait $process
  check_equal "training text that was exchanged through a mapping" 3 $?
  check_contains "is named" "than when it was checked: it was written to while it was being used" "$(cat mapped.out)"
  check_equal "though no time of the file says it" True "$(cat times.out)"
  rm -r "$memory"
fi

# Whose weights they are.
check "the artifact" "$mulligan" quantize honest
check "test-time training" "$mulligan" ttt honest/artifact.mulligan --output honest
cp -r honest copy
cp outside/weights.safetensors copy/
"$mulligan" eval copy >copy.out 2>&1
check_contains "weights of another run are a trial" "not a score of the run, because of contents of the weights" "$(cat copy.out)"
check_equal "and no score of the run" "" "$(cat copy/evaluations.jsonl 2>none)"
check_refused "nor is their artifact its own" 3 "other weights" quantize copy
"$mulligan" eval honest >own.out 2>&1
check_equal "the run's own are its score" 1 "$(wc -l <honest/evaluations.jsonl)"
"$mulligan" quantize outside --output copy/artifact.mulligan >other.out 2>&1
ours=$(sha256sum copy/ttt_result.json)
"$mulligan" ttt copy/artifact.mulligan --output copy --set ledger.rules=open >copy.out 2>&1
check_contains "another artifact is a trial" "contents of the artifact" "$(cat copy.out)"
check_equal "and the run's result stays" "$ours" "$(sha256sum copy/ttt_result.json)"
cp honest/ttt_result.json outside/ttt_result.json
check_contains "a result that was copied" "neither the run's nor its artifact" "$("$mulligan" report honest outside 2>&1)"
rm outside/ttt_result.json

# Edited results.
cp -r honest edited
sed -i 's/"val_bpb": [0-9.]*/"val_bpb": 1.0001/' edited/result.json
sentence="was changed after it was written"
check_contains "compare names an edited result" "edited/result.json' $sentence" "$("$mulligan" report honest edited 2>&1)"
check_contains "stats" "$sentence" "$("$mulligan" stats honest edited --metric val_bpb 2>&1)"
check_contains "export" "$sentence" "$("$mulligan" report edited --csv edited.csv 2>&1)"
check "report" "$mulligan" report edited
check_contains "which marks it" "$sentence" "$(cat edited/report.html)"
check_refused "stats accept takes none" 3 "$sentence" stats accept --new edited edited --reference honest --metric val_bpb
check_refused "nor do strict rules" 1 "$sentence" quantize edited --source "$root"
check_equal "an honest run has no such mark" "" "$("$mulligan" report honest outside | grep warning)"
cp -r honest edited_ledger
sed -i 's/"train": [0-9.]*/"train": 0.1/' edited_ledger/ledger.json
check_contains "an edited ledger" "ledger.json' $sentence" "$("$mulligan" report honest edited_ledger 2>&1)"

# A library under the name of one of the tree's.
cp "$build/lib/mulligan/plugins/mulligan_doc_lora.so" mulligan_doc_lora.so
mkdir stripped && strip -o stripped/mulligan_doc_lora.so mulligan_doc_lora.so
path() { printf '%s' "--set ttt.adapters.path=$work/$1/mulligan_doc_lora.so"; }
# shellcheck disable=SC2046
check "a stripped copy of the build's own" "$mulligan" quantize honest --source "$root" --output strip.mulligan $(path stripped)
mkdir other
python3 - mulligan_doc_lora.so other/mulligan_doc_lora.so <<'PYTHON'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
at = data.find(b"adapters")  # of a sentence, which is loaded
data[at] ^= 0x20
open(sys.argv[2], "wb").write(data)
PYTHON
# shellcheck disable=SC2046
check_refused "another library of the name" 1 "not a library that this program was built with" quantize honest --source "$root" \
  --output other.mulligan $(path other)
# A backend computes the scores, and rows of kernels do in its place.
mkdir backends
python3 - "$build/lib/mulligan/plugins/mulligan_cpu.so" backends/mulligan_cpu.so <<'PYTHON'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
at = data.find(b"Runs everything on the processor")  # its summary, which is loaded
data[at] ^= 0x20
open(sys.argv[2], "wb").write(data)
PYTHON
for command in "eval honest" "train strict.toml --set run.directory=other_backend" "quantize honest --output backend.mulligan"; do
  # shellcheck disable=SC2086
  check_refused "another backend of the name, ${command%% *}" 1 "not a library that this program was built with" $command \
    --set "backend.path=$work/backends/mulligan_cpu.so"
done
{ cat strict.toml; printf '[[backend.kernels]]\nmatch = "cross_entropy_fwd"\npath = "%s/any.ptx"\n' "$work"; } >kernels.toml
touch any.ptx
check_refused "a kernel of one's own" 1 "computes in the place of the kernel 'cross_entropy_fwd'" train kernels.toml \
  --set run.directory=own_kernel
counted() { sed -n 's/^code of an evaluation, compressed source *\([0-9,]*\)$/\1/p' "$1" | tr -d ,; }
# shellcheck disable=SC2046
"$mulligan" quantize honest --source "$root" --output other.mulligan --set ledger.rules=open $(path other) >whole.out 2>&1
"$mulligan" quantize honest --source "$root" --output own.mulligan --set ledger.rules=open >tree.out 2>&1
check_true "is counted whole under open rules" "$(counted whole.out) > $(counted tree.out)"

finish
