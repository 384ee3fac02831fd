#!/usr/bin/env bash
# Task vectors: vectors pack, show, unpack; merge; what they make read by eval, ttt and train; a sweep's seeds
# in one file; refusals.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

# Text that is always the same, so that what a loss moves by is, too: sentences in which the next word is one of three.
mkdir corpus
awk 'BEGIN {
  count = split("the a one water stone light garden bridge record paper runs holds turns under over beside slowly again", word, " ")
  state = 12345
  for (document = 1; document <= 120; ++document) {
    last = document % count
    for (i = 1; i <= 150; ++i) {
      state = (state * 16807) % 2147483647
      last = (last * 5 + int(state / 65536) % 3 * 7 + 1) % count
      printf "%s%s", word[last + 1], i % 12 == 0 ? ".\n" : " " >("corpus/" document ".txt")
    }
    close("corpus/" document ".txt")
  }
}'
"$mulligan" prepare corpus --out data --vocab-size 300 --validation-documents 4 >/dev/null || flunk "prepare"
{
  small_config "$work/data" | sed "s/^vocabulary = 512/vocabulary = 300/"
  record_sections
  printf '[doctor]\nlevel = "off"\n' # weights that know as little as these fail D10
} >small.toml
tune() { # tune NAME TOKENS: a few gentle steps of so many tokens
  "$mulligan" train small.toml --quiet --set run.directory="runs/$1" --set train.tokens_per_step="$2" --set train.steps=5 \
    --set init.from=runs/base/weights.safetensors --set ema.decay=0 --set optimizer.embedding.lr=0.001 \
    --set optimizer.matrices.lr=0.0007 --set optimizer.vectors.lr=0.0003 >/dev/null || flunk "train $1"
}
"$mulligan" train small.toml --quiet --set run.directory=runs/base --set train.steps=40 >/dev/null || flunk "train base"
tune x 1024
tune y 2048
# loss WEIGHTS: nats a token of weights outside of a run
loss() { "$mulligan" eval "$1" --config small.toml | grep -o 'val_loss *[0-9.]*' | sed 's/.* //'; }
near() { echo "# $1: $2 against $3"; check_true "$1" "sqrt(($2 - $3)^2) <= $4"; } # near WHAT A B DISTANCE

# Packing and unpacking.
see "pack" 0 "$mulligan" vectors pack runs/base runs/x runs/y --bits 4 --out v4.safetensors
check_contains "it says that it is lossy" "task 'x': lossy, largest error of a weight" "$seen"
check_equal "show says the same" "$seen" "$("$mulligan" vectors show v4.safetensors)"
check_true "4 bits are about an eighth of f32" "$(stat -c %s v4.safetensors) < 0.25 * 2 * $(stat -c %s runs/x/weights.safetensors)"
check "unpack" "$mulligan" vectors unpack v4.safetensors runs/base --task x --out x4.safetensors
exact=$(json runs/x/result.json val_loss_nats)
file=$(loss x4.safetensors)
near "4 bits keep the loss" "$file" "$exact" 1e-3
check_true "which the tuning had moved by more" "$(loss runs/base/weights.safetensors) - $exact > 2e-3"
check "ttt of unpacked weights" "$mulligan" ttt x4.safetensors --config small.toml --set ttt.document_fraction=0.1
check "training from unpacked weights" "$mulligan" train small.toml --quiet --set run.directory=runs/warm \
  --set train.steps=1 --set init.from=x4.safetensors
check "RTVQ, models by names of one's own" "$mulligan" vectors pack runs/base first=runs/x second=runs/y --bits 2 --base-bits 3 --out r.safetensors
check_contains "their names" "task 'second'" "$("$mulligan" vectors show r.safetensors)"

# Merging.
for method in "task_arithmetic --scale 0.5" "average" "ties --keep 0.3"; do
  name=${method%% *}
  # shellcheck disable=SC2086
  check "merge by $name" "$mulligan" vectors merge runs/base runs/x runs/y --method $method --out "$name.safetensors"
  # shellcheck disable=SC2086
  "$mulligan" vectors merge runs/base v4.safetensors --method $method --out "${name}4.safetensors" >/dev/null || flunk "merge of packed models"
  near "$name of 4 bits has the loss of $name of f32" "$(loss "${name}4.safetensors")" "$(loss "$name.safetensors")" 1e-3
done
check_contains "a merged model says what it is" "merged by average, scale 1, of 2 models on the base base: x, y" "$(head -c 20000 average.safetensors | tr -d "\\0")"

# Refusals.
check_refused "no such task" 2 "there are: x, y" vectors unpack v4.safetensors runs/base --task z --out no.safetensors
check_refused "a file that exists" 2 "only exact copy" vectors unpack v4.safetensors runs/base --task x --out runs/x/weights.safetensors
check_refused "two of one name" 2 "name them otherwise" vectors pack runs/base runs/x runs/x --out no.safetensors
check_refused "too many bits" 2 "outside of 2 to 8" vectors pack runs/base runs/x --bits 9 --out no.safetensors
check_refused "a scale that is not a number" 2 "is not a number" vectors merge runs/base runs/x --scale nan --out no.safetensors
check_refused "keep without ties" 2 "--keep is of the method ties" vectors merge runs/base runs/x --keep 0.5 --out no.safetensors
check "nothing is left half-written" test ! -e no.safetensors
