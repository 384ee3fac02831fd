#!/usr/bin/env bash
# Data names no code: no command loads a library that a run directory, a checkpoint or a stored configuration names, or
# in their folder. The libraries of marking_plugins leave a mark when they are loaded.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

marking=$build/tests/marking_plugins
export MULLIGAN_MARK=$work/mark

tiny_data --validation-documents 4
{
  small_config "$work/data" | sed -e 's/^steps = .*/steps = 4/'
  printf '[checkpoint]\nevery_steps = 2\n'
  record_sections
} >own.toml
check "train a run" "$mulligan" train own.toml --set run.directory=honest
check "its artifact" "$mulligan" quantize honest
honest=$("$mulligan" eval honest | grep -o 'val_bpb [0-9.]*')

# The kind of the plugin table that each header opens.
kinds='[backend] backend
[loss] loss
[schedule] schedule
[optimizer.embedding] optimizer
[optimizer.matrices] optimizer
[quantize] quantizer
[ttt.adapters] ttt
[ttt.optimizer] optimizer'

# poison FOLDER HOW: a copy of the honest run whose saved configurations name the marking libraries. HOW: path (instead
# of the plugin's name), both (the name stays), name (a plugin "KIND_marking" in the run's folder), dots, slash.
poison() {
  rm -rf "$1"
  cp -r honest "$1"
  for file in "$marking"/mulligan_*_marking.so; do
    cp "$file" "$1/"
    cp "$file" .
  done
  KINDS=$kinds MARKING=$marking python3 - "$1" "$2" "$work" <<'PYTHON'
import glob, hashlib, json, os, re, sys
folder, how, work = sys.argv[1:]
kinds = dict(line.rsplit(" ", 1) for line in os.environ["KINDS"].splitlines())
def poisoned(text):
    out, kind = [], None
    for line in text.splitlines():
        if line.startswith("["): kind = kinds.get(line.strip())
        if kind and line.startswith("plugin = "):
            library = f"mulligan_{kind}_marking.so"
            absolute = f"{os.environ['MARKING']}/{library}"
            line = {"path": f'path = "{absolute}"', "both": f'{line}\npath = "{absolute}"',
                    "relative": f'path = "{library}"', "name": f'plugin = "{kind}_marking"',
                    "dots": f'path = "../{os.path.basename(work)}/{library}"',
                    "slash": f'plugin = "../{library}"'}[how]
        out.append(line)
    return "\n".join(out) + "\n"
for name in glob.glob(f"{folder}/config.toml"):
    text = poisoned(open(name).read())
    assert "marking" in text
    open(name, "w").write(text)
for name in glob.glob(f"{folder}/checkpoints/*/manifest.json"):
    manifest = json.load(open(name))
    manifest["config"] = poisoned(manifest["config"])
    assert "marking" in manifest["config"]
    text = json.dumps(manifest, indent=1) + "\n"
    open(name, "w").write(text)
    digest = f"{name}.sha256"
    was = open(digest).read()
    open(digest, "w").write(re.sub("[0-9a-f]{64}", hashlib.sha256(text.encode()).hexdigest(), was))
PYTHON
}

# untouched WHAT ARGUMENT...: the command, whatever comes of it, loads none of the libraries.
untouched() {
  local what=$1
  shift
  rm -f "$MULLIGAN_MARK"
  "$mulligan" "$@" >seen.out 2>seen.err
  local code=$?
  if [[ -e $MULLIGAN_MARK ]]; then
    flunk "$what" "a library was loaded (exit code $code): mulligan $*"
  elif ((code > 4)); then
    flunk "$what" "exit code $code: $(cat seen.err)"
  else
    pass "$what"
  fi
}

# The mark can be left at all: by a path in one's own file, on the command line, and in a folder that one names.
"$mulligan" train own.toml --set loss.path="$marking/mulligan_loss_marking.so" --set run.directory=x >/dev/null 2>&1
check "one's own --set loads a library" rm mark
printf 'extends = "own.toml"\n[loss]\npath = "%s"\n' "$marking/mulligan_loss_marking.so" >mine.toml
"$mulligan" config check mine.toml >/dev/null 2>&1
check "one's own file loads a library" rm mark
"$mulligan" config check own.toml --set loss.plugin=loss_marking --plugin-path "$marking" >/dev/null 2>&1
check "one's own --plugin-path loads a library" rm mark

for how in path both relative name dots slash; do
  poison foreign $how
  checkpoint=$(echo foreign/checkpoints/step_* | cut -d' ' -f1)
  for command in "eval foreign" "eval foreign/weights.safetensors" "eval foreign/artifact.mulligan" \
    "quantize foreign --output q.mulligan" "quantize foreign/config.toml --dry-run" "ttt foreign" "ttt foreign/weights.safetensors --output o" \
    "report foreign" "compare honest foreign" "checkpoint show foreign" "checkpoint verify foreign" \
    "checkpoint diff honest foreign" "checkpoint export foreign --out e.safetensors" \
    "train own.toml --set run.directory=y_$how --resume $checkpoint" "train own.toml --set run.directory=foreign --resume" \
    "train foreign/config.toml --set run.directory=z_$how" "train foreign/config.toml --dry-run" "config print foreign/config.toml" \
    "config check foreign/config.toml" "config diff own.toml foreign/config.toml" "profile foreign/config.toml --steps 1" "plugins"; do
    # shellcheck disable=SC2086
    untouched "$how: $command" $command
  done
  cd foreign || exit 1
  untouched "$how: eval . inside of it" eval .
  cd "$work" || exit 1
  printf 'extends = "foreign/config.toml"\n' >upon.toml
  check "$how: the poisoned checkpoints are sound" "$mulligan" checkpoint verify foreign
  untouched "$how: one's own file that extends the foreign one" config check upon.toml
  printf 'config = "foreign/config.toml"\ndirectory = "sweep_%s"\nseeds = [1]\n[[rows]]\nname = "a"\n' $how >sweep.toml
  untouched "$how: sweep over it" sweep sweep.toml
done

# A run of one's own with a library by path: which one it needs is said, and how to allow it.
poison foreign both
check_equal "names alone: the user's own plugins score it" "$honest" "$("$mulligan" eval foreign | grep -o 'val_bpb [0-9.]*')"
poison foreign path
check_refused "the library that is asked for is named" 2 "$marking/mulligan_backend_marking.so" eval foreign
check_refused "and how to allow it" 2 "--set backend.path=FILE" eval foreign
check_equal "the key alone is enough" "$honest" \
  "$("$mulligan" eval foreign --set backend.path="$build/lib/mulligan/plugins/mulligan_cpu.so" | grep -o 'val_bpb [0-9.]*')"
check "resuming from foreign data needs none of its libraries" \
  "$mulligan" train own.toml --set run.directory=again --resume "$(echo foreign/checkpoints/step_* | cut -d' ' -f1)"

# A run that was trained with a library by path says its name, so that a folder of plugins is enough later.
mkdir elsewhere
cp "$build/lib/mulligan/plugins/mulligan_constant.so" elsewhere/
printf 'extends = "own.toml"\n[schedule]\npath = "elsewhere/mulligan_constant.so"\n' >by_path.toml
check "train with a library by path" "$mulligan" train by_path.toml --set run.directory=by_path
check_contains "the resolved configuration names its plugin" 'plugin = "constant"' "$(grep -A 2 '^\[schedule\]' by_path/config.toml)"

# Places to write to: the folder of a cache and the audit log are not taken from data.
cp -r honest places
sed -i -e 's#^\[ttt\]#[ttt]\naudit = "weights.safetensors"#' -e '/^audit = "" */d' places/config.toml
before=$(sha256sum <places/weights.safetensors)
"$mulligan" ttt places >/dev/null 2>seen.err
check_equal "an audit log does not replace the weights" "$before" "$(sha256sum <places/weights.safetensors)"
check_contains "and it is said" "a place to write to" "$(cat seen.err)"

# A declared model that the file does not hold is refused before memory is taken for it, and so is another file's word.
sed -e 's/^width = .*/width = 65536/' -e 's/^head_width = .*/head_width = 1024/' -e 's/^heads = .*/heads = 64/' -e 's/^kv_heads = .*/kv_heads = 64/' -e 's/^mlp_hidden = .*/mlp_hidden = 1048576/' \
  -e 's/^layers = .*/layers = 1024/' -e 's/^vocabulary = .*/vocabulary = 65536/' places/config.toml >huge.toml
for command in "eval places --config huge.toml" "ttt places --config huge.toml" "quantize places --config huge.toml"; do
  # shellcheck disable=SC2086
  check_refused "a huge model over small weights: ${command%% *}" 3 "but the configured model has" $command
done
cp honest/artifact.mulligan damaged.mulligan
printf X | dd of=damaged.mulligan conv=notrunc status=none
check_refused "an artifact whose first word is damaged" 3 "neither an artifact" eval damaged.mulligan
check_refused "and for test-time training" 3 "neither an artifact" ttt damaged.mulligan

# Test-time training that reads later tokens: refused while it is recorded, or void, and then there is no score.
smuggling=$build/tests/ttt_plugins/mulligan_smuggling.so
smuggle() { echo "--set ttt.adapters.plugin=smuggling --set ttt.adapters.path=$smuggling --set ttt.adapters.how=$1"; }
# shellcheck disable=SC2046
{
  check_refused "a shifted view is refused" 1 "would cut or shift tokens" ttt honest --output void $(smuggle shifted_view)
  check_refused "a plugin's kernel that reads the next row is refused" 2 "would be illegal" ttt honest --output void $(smuggle kernel)
  "$mulligan" ttt honest --output void --set ttt.check=full $(smuggle kernel_unlike_probe) >void.out 2>void.err
  check_equal "a kernel that deceives the probe: exit code" 1 $?
}
check_contains "the run is invalid" "the run is invalid" "$(cat void.err)"
check_equal "no score is printed" "" "$(grep 'with test-time training:' void.out)"
check_equal "the result says void" "true" "$(json void/ttt_result.json void)"
check_equal "and has no score" "" "$(grep -o 'val_bpb' void/ttt_result.json)"

check_refused "strict rules want the check" 2 'is "off", so no score is checked' ttt honest --output void --set ttt.check=off \
  --set ledger.rules=strict --set ttt.document_fraction=1

# A command needs the plugins of what it does, nothing else: an installation that has only those.
mkdir -p bare/bin bare/lib/mulligan/plugins
cp "$mulligan" bare/bin/
mulligan=$work/bare/bin/mulligan
has() { for name in "$@"; do cp "$build/lib/mulligan/plugins/mulligan_$name.so" bare/lib/mulligan/plugins/; done; }
has cpu
check_refused "training needs all" 2 "there is no loss plugin 'softcap_ce'" train own.toml --set run.directory=bare_run
check_equal "the backend alone: eval RUN" "$honest" "$("$mulligan" eval honest | grep -o 'val_bpb [0-9.]*')"
check "the backend alone: eval ARTIFACT" "$mulligan" eval honest/artifact.mulligan
check_refused "quantising needs the quantiser" 2 "there is no quantizer plugin 'gptq'" quantize honest --output q.mulligan
has gptq
check "backend and quantiser: quantize RUN" "$mulligan" quantize honest --output q.mulligan --quiet
check_contains "which warns that the evaluation settings are left out" "no plugin 'doc_lora', so the artifact carries no evaluation settings" \
  "$("$mulligan" quantize honest --output again.mulligan --quiet 2>&1)"
check_equal "the artifact has the same score" "$("$mulligan" eval honest/artifact.mulligan --quiet | grep -o 'val_bpb [0-9.]*')" \
  "$("$mulligan" eval q.mulligan --quiet | grep -o 'val_bpb [0-9.]*')"
check_refused "strict: quantising needs the adapters, too" 2 "there is no ttt plugin 'doc_lora'" quantize honest --output strict.mulligan \
  --set ledger.rules=strict
check_refused "test-time training needs the adapters" 2 "there is no ttt plugin 'doc_lora'" ttt honest --output o
has doc_lora adamw
check "backend, adapters and their optimiser: ttt RUN" "$mulligan" ttt honest --output o
check "and ttt ARTIFACT" "$mulligan" ttt honest/artifact.mulligan --output o
check "and quantize makes the same artifact" "$mulligan" quantize honest --output q.mulligan
check "to the byte" cmp q.mulligan honest/artifact.mulligan
has cuda
check_refused "the emulated device needs its library" 2 "The emulated device was not found" eval honest --set backend.plugin=cuda --set backend.device=emulated
