#!/usr/bin/env bash
# Settings and files by which a score would be divided by more bytes than the text has, or be of fewer tokens than
# the validation set has: refused, each by the command that meets it.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

tiny_data --validation-documents 4 --tokens-per-shard 8000
record_config "$work/data" 1.0 >small.toml
strict=(--set ledger.rules=strict --set train.steps=2)
check "a run under strict rules" "$mulligan" train small.toml "${strict[@]}"
run=runs/small
check_equal "of every token" "$(($(json $run/ledger.json of_tokens) - 1))" "$(json $run/ledger.json tokens)"
check "quantised" "$mulligan" quantize $run --source "$root" --set ledger.rules=strict
elsewhere=(--set "run.directory=runs/other" --set train.steps=2)

# Byte side tables.
python3 - <<'END'
import array, glob, os
os.mkdir("tables")
for file in glob.glob("data/fineweb_val_0*.bin"):
    bytes_ = open(file, "rb").read()
    tokens = array.array("H", bytes_[1024:])
    counts = array.array("H", [0 if token == 1 else 9 for token in tokens])
    open("tables/" + os.path.basename(file).replace("_val_", "_val_bytes_"), "wb").write(bytes_[:1024] + counts.tobytes())
END
tables=(--set "data.validation_bytes=$work/tables")
check_refused "train: tables of plain text" 3 "says that its text is plain" train small.toml "${elsewhere[@]}" "${tables[@]}"
check_refused "eval" 3 "says that its text is plain" eval $run "${tables[@]}"
check_refused "ttt" 3 "says that its text is plain" ttt $run/artifact.mulligan --output $run "${tables[@]}"
cp -r data bare
rm bare/manifest.json
bare=(--set "data.validation=$work/bare/fineweb_val_*.bin")
check_refused "eval: without a manifest they are held against decoding" 3 "its tokens decode to" eval $run "${bare[@]}" "${tables[@]}"
check_refused "eval: the same shards without tables, under strict rules" 3 "says what text the shards" eval $run "${bare[@]}"
check "and under open rules" "$mulligan" eval $run "${bare[@]}" --set ledger.rules=open

# Other letters in the tokenizer's pieces, with the ids as they were: only the text of the tokens shows it.
check_refused "strict: shards without their text" 3 "no original documents" train small.toml "${elsewhere[@]}" "${strict[@]}" \
  --set "data.train=$work/bare/fineweb_train_*.bin" "${bare[@]}"
cp -r data retold
tr a-z b-za <data/validation.txt >retold/validation.txt
check_refused "strict: another text next to them" 3 "is not the text" eval $run --set ledger.rules=strict \
  --set "data.validation=$work/retold/fineweb_val_*.bin"

# Tokens that are not scored.
dropped=(--set eval.drop_remainder=true --set eval.sequence_length=6000 --set eval.packed_sequences=1)
check_refused "train: a dropped remainder" 2 "leaves validation tokens unscored" train small.toml "${elsewhere[@]}" "${strict[@]}" "${dropped[@]}"
for stage in "quantize $run --source $root" "eval $run" "ttt $run/artifact.mulligan --output $run"; do
  # shellcheck disable=SC2086  # words
  check_refused "${stage%% *}" 2 "leaves validation tokens unscored" $stage --set ledger.rules=strict "${dropped[@]}"
done
check "train: open rules take it" "$mulligan" train small.toml "${elsewhere[@]}" "${dropped[@]}"
check_refused "but what it booked is not a record" 1 "of the validation set were not scored" quantize runs/other --source "$root" \
  --set ledger.rules=strict --set eval.drop_remainder=false
rm -rf runs/other
first=(--set "data.validation=$work/data/fineweb_val_000000.bin")
check "train: one shard of several" "$mulligan" train small.toml "${elsewhere[@]}" "${first[@]}"
rm -rf runs/other
check_refused "strict: one shard of several" 3 "leaves out" train small.toml "${elsewhere[@]}" "${strict[@]}" "${first[@]}"
check_refused "eval" 3 "leaves out" eval $run --set ledger.rules=strict "${first[@]}"
check_refused "ttt" 3 "leaves out" ttt $run/artifact.mulligan --output $run --set ledger.rules=strict "${first[@]}"
cp bare/fineweb_val_000000.bin bare/fineweb_val_000099.bin
check_refused "strict: the same shard twice" 3 "hold the same tokens" eval $run --set ledger.rules=strict "${bare[@]}"

# Weighted parts of the training text.
grep -v '^train = ' small.toml >mix.toml
cat >>mix.toml <<TOML
[[data.mix]]
name = "all"
train = "$work/data/fineweb_train_*.bin"
$(wide_ledger)
TOML
check "record: of a mix" "$mulligan" record mix.toml --seeds 1 --out mixed --author A --github-id a --name "A mix" --source "$root" --set train.steps=2
