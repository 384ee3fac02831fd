#!/usr/bin/env bash
# Validation text in what is learned from: cut into other shards, changed in places, as one source of a mix, or as what quantisation calibrates on. Strict rules refuse it before the first step; open rules warn and record it.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

tiny_data --validation-documents 5
record_config "$work/data" 1.0 >small.toml # strict rules score the whole set
strict=(--set ledger.rules=strict --set train.steps=2)

# shards CHANGE: training shards of other names in the folder CHANGE, the changed validation text among them.
shards() {
  python3 - "$1" <<'END'
import glob, os, random, struct, sys
change = sys.argv[1]
random.seed(1)
os.makedirs(change)
def tokens(side):
    body = b"".join(open(f, "rb").read()[1024:] for f in sorted(glob.glob(f"data/fineweb_{side}_*.bin")) if "bytes" not in f)
    return list(struct.unpack(f"<{len(body) // 2}H", body))
def documents(ids):
    found = []
    for token in ids:
        if token == 1: found.append([])
        found[-1].append(token)
    return found
scored = documents(tokens("val"))
if change == "changed": scored = [[t if t == 1 or random.random() > 1 / 40 else random.randrange(300, 500) for t in d] for d in scored]
def write(name, parts):
    ids = [t for part in parts for t in part]
    header = struct.pack("<256i", 20240520, 1, len(ids), *[0] * 253)
    open(f"{change}/{name}.bin", "wb").write(header + struct.pack(f"<{len(ids)}H", *ids))
half = len(scored) // 2
if change == "copy":  # nothing else, in three shards
    for i in range(3): write(f"part{i}", scored[i::3])
else:
    own = documents(tokens("train"))
    write("part0", own[: len(own) // 2] + scored[:half])
    write("part1", scored[half:] + own[len(own) // 2 :])
END
}

see_all "honest data pass under strict rules" 0 "$mulligan" train small.toml --set run.name=honest "${strict[@]}"
check_contains "and the log says so" "overlap: of the validation text 0 % stands in the training data" "$seen"
check_equal "and the result" 0.0 "$(json runs/honest/result.json copied)"
check_true "with the share" "$(json runs/honest/result.json share) < 0.05"

for change in copy changed; do
  shards $change
  check_refused "validation text in training data, $change" 3 'under ledger.rules = "strict" there would be no result' \
    train small.toml --set run.name=$change "${strict[@]}" --set "data.train=$work/$change"
  check_equal "and nothing is begun" "" "$(ls runs/$change/config.toml runs/$change/metrics.jsonl 2>/dev/null)"
done
see_all "open rules train on it" 0 "$mulligan" train small.toml --set run.name=open --set train.steps=2 --set "data.train=$work/changed"
check_contains "with a warning that names the remedy" "prepare --drop-overlap" "$(grep '^warning: .* of the validation text' <<<"$seen")"
check_true "and the share in the result" "$(json runs/open/result.json share) > 0.5"
check_refused "which strict rules do not take afterwards" 1 "of what train read" quantize runs/open --set ledger.rules=strict \
  --set "data.train=$work/data/fineweb_train_*.bin"

sed 's/^train = .*//' small.toml >mix.toml
cat >>mix.toml <<TOML
[[data.mix]]
name = "own"
train = "$work/data/fineweb_train_*.bin"
weight = 0.9
[[data.mix]]
name = "other"
train = "$work/copy"
weight = 0.1
TOML
check_refused "as one source of a mix" 3 'under ledger.rules = "strict" there would be no result' train mix.toml \
  --set run.name=mix "${strict[@]}"

# Calibration.
calibrate=(quantize runs/honest --set ledger.rules=strict)
check "calibration on training data" "$mulligan" "${calibrate[@]}"
check_true "its share is in the ledger" "$(grep -c '"share"' runs/honest/ledger.json) == 2"
for change in copy changed; do
  check_refused "calibration on validation text, $change" 3 'under ledger.rules = "strict" there would be no result' \
    "${calibrate[@]}" --set "data.train=$work/$change"
done
check_refused "calibration without the validation text" 3 "is not known" "${calibrate[@]}" --set data.validation=
check_refused "calibration with another validation text" 3 "is not known" "${calibrate[@]}" \
  --set "data.validation=$work/data/fineweb_train_*.bin" --set "data.train=$work/copy"

# A text that repeats itself cannot be judged: its windows stand everywhere. That is no accusation.
mkdir letters
body=$(head -c 3000 "corpus/$(ls corpus | head -n 1)")
for i in $(seq 40); do printf 'Dear customer number %d of the town %d,\n%s\nyours, clerk %d\n' $((i * 7919)) $((i * i)) "$body" $((i * 31)) >letters/$i.txt; done
"$mulligan" prepare letters --out letters_data --vocab-size 512 --validation-documents 8 >/dev/null 2>&1
small_config "$work/letters_data" >letters.toml
see_all "strict rules take text that repeats itself" 0 "$mulligan" train letters.toml --set run.name=letters "${strict[@]}"
check_contains "with a warning" "warning: the overlap of training and validation text is unknown" "$seen"

# What prepare drops, strict rules do not miss.
mkdir family
for i in $(seq 40); do
  cp "corpus/$(ls corpus | sed -n "${i}p")" "family/$i.txt"
  { head -c 3000 "family/$i.txt" | tr a-z A-Z; tail -c +3001 "family/$i.txt" | sed 's/return/yield/'; } >"family/copy$i.txt"
done
seen=$("$mulligan" prepare family --out kept --vocab-size 512 --validation-documents 8 2>&1)
check_contains "prepare names the remedy" "mulligan prepare --drop-overlap" "$(grep D25 <<<"$seen")"
seen=$("$mulligan" prepare family --out dropped --vocab-size 512 --validation-documents 8 --drop-overlap 2>&1)
check_equal "which repairs it" "" "$(grep D25 <<<"$seen")"
check_equal "for the measure finds nothing in what is left" 0.0 "$(json dropped/manifest.json share)"
small_config "$work/dropped" >dropped.toml
check "and strict rules take it" "$mulligan" train dropped.toml --set run.name=dropped "${strict[@]}"
