#!/usr/bin/env bash
# Bad input of every kind: one sentence that says what and where, the documented exit code, nothing started.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"
quickstart=$root/configs/quickstart.toml

# Command line: 2.
check_refused "no command" 2 "name a command"
check_refused "unknown command names the nearest" 2 "did you mean 'plugins'?" plugin
check_equal "the help has all commands, by groups" "Run: prepare train launch eval quantize ttt generate sweep try record
Look: config plugins doctor profile report stats checkpoint completion
Lab: probe vectors" "$("$mulligan" --help | awk '/^(Run|Look|Lab) \(/ { if (line) print line; line = $1 ":"; next }
  /^  [a-z]/ { line = line (line ? " " $1 : "") } /^$/ { if (line) print line; line = "" } END { if (line) print line }')"
check_refused "unknown option" 2 "unknown option '--foo' of \`mulligan plugins\`" plugins --foo
check_refused "a slip of an option is named before what is missing" 2 "unknown option '--hlep' of \`mulligan train\`; did you mean '--help'?" train --hlep
check_refused "with a value" 2 "did you mean '--set'?" train x.toml --sett=a.b=1
check_refused "of the program" 2 "did you mean '--version'?" --versoin
check_refused "missing file argument" 2 "\`mulligan config print\` lacks FILE: Configuration (TOML)" config print
check_refused "missing option" 2 "\`mulligan checkpoint import\` lacks --out FILE" checkpoint import x --config y
check_refused "option without its value" 2 "KEY=VALUE missing; \`mulligan train --help\` says more" train x.toml --set
check_refused "option's value of a wrong kind" 2 "--vocab-size = 1e99; \`mulligan prepare --help\` says more" prepare --vocab-size 1e99
check_refused "option's value out of range" 2 "--steps: Value 0 not in range 1 to 1000000" profile x.toml --steps 0
check_refused "option's value not among the choices" 2 "f8 not in {f32,bf16,f16}" checkpoint export x --dtype f8 --out y
check_refused "one argument too many" 2 "\`mulligan train\` takes no further argument, and 'b' is one" train a b
check_refused "unknown subcommand of config" 2 "unknown command 'prin' of \`mulligan config\`; did you mean 'print'?" config prin
check "--help" "$mulligan" --help
check_equal "--version: version, commit, build, plugin interface" "1" \
  "$("$mulligan" --version | grep -cE '^mulligan [0-9]+[.][0-9]+[.][0-9]+ \(commit [0-9a-f]{40}(\+changes)?|unknown, [A-Za-z]+ build, plugin interface 1[.][0-9]+\)$')"
for command in prepare train eval plugins config; do
  check_contains "$command --help" "mulligan $command" "$("$mulligan" "$command" --help)"
done

# Configuration: 2.
check_refused "missing configuration" 2 "nothere.toml" config check nothere.toml
printf '[model]\nlayer = 3\n' >unknown_key.toml
check_refused "unknown key: file, line, nearest key" 2 "unknown_key.toml:2: unknown key 'model.layer'; did you mean 'model.layers'?" \
  config check unknown_key.toml
check_refused "--set of a wrong type" 2 "model.layers" config check "$quickstart" --set model.layers=many
check_refused "--set without a value" 2 "--set" config check "$quickstart" --set model.layers
check_refused "launch: no command" 2 "'foo' is not a command of mulligan" launch foo
check_equal "which leaves nothing behind" "" "$(ls -d launch_logs 2>/dev/null)"
check_refused "checkpoint verify: nothing there" 3 "there is no 'nosuch'" checkpoint verify nosuch
mkdir -p holds_none
check_refused "checkpoint verify: a folder without one" 3 "holds no checkpoint" checkpoint verify holds_none
check_equal "help is a command" "$("$mulligan" train --help)" "$("$mulligan" help train)"
check_equal "help alone" "$("$mulligan" --help)" "$("$mulligan" help)"
check_refused "what train refuses config check refuses" 2 "give it to adamw or sgd" config check "$quickstart" --set optimizer.vectors.plugin=muon --set optimizer.vectors.lr=0.01
check_refused "train before prepare" 3 "mulligan prepare" train "$quickstart" --set data.tokenizer=nothere/tokenizer.model \
  --set 'data.train=nothere/*_train_*.bin' --set 'data.validation=nothere/*_val_*.bin' --set run.directory=unprepared
("$mulligan" config print "$quickstart"; echo $? >head.code) 2>head.err | head -n 1 >/dev/null
check_equal "a reader that has seen enough: no word" "" "$(cat head.err)"

# Plugins: 2.
check_refused "unknown key of a plugin" 2 "nesterof" config check "$quickstart" --set optimizer.matrices.nesterof=true
check_refused "unknown plugin name of plugins" 2 "nosuch" plugins nosuch

# Data: 3.
check_refused "prepare: no input" 2 "prepare needs" prepare --out out
mkdir empty
check_refused "prepare: empty folder" 3 "no text document" prepare empty --out out
check_refused "prepare --check: no manifest" 3 "manifest" prepare --check empty
check_refused "train: no data" 3 "no token shard matches" train "$quickstart" --set data.train='nothere/fineweb_*.bin' --set data.tokenizer='""' --set run.directory="$work/run"
check_equal "it left no result" "" "$(find "$work/run" -name 'result.json' -o -name '*.safetensors')"
