#!/usr/bin/env bash
# mulligan launch, with shell scripts as ranks: what each finds in its environment, on which CPUs it runs, what the
# terminal shows and what the logs keep.
source "$(dirname "${BASH_SOURCE[0]}")/../end_to_end/cli_checks.bash"
unset MULLIGAN_SECRET MULLIGAN_SECRET_FILE

cat >environment.sh <<'SH'
#!/usr/bin/env bash
env >environment_$RANK
taskset -cp $$ | sed 's/.*: //' >cpus_$RANK
readlink /proc/$$/fd/0 >input_$RANK
SH
cat >speak.sh <<'SH'
#!/usr/bin/env bash
echo "rank $RANK speaks"
echo "rank $RANK warns" >&2
printf 'a line without its end'
SH
chmod +x environment.sh speak.sh
value() { sed -n "s/^$2=//p" "environment_$1"; } # value RANK NAME

TORCHELASTIC_RUN_ID=other OMPI_COMM_WORLD_RANK=7 PMI_RANK=7 RANK=9 OMP_NUM_THREADS='' \
  "$mulligan" launch --nproc-per-node 3 --rdzv-id lesson --log-dir logs -- ./environment.sh >start.out 2>start.err
check_equal "three ranks: exit code" 0 $?
for rank in 0 1 2; do
  seen=""
  for name in RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE GROUP_RANK MASTER_ADDR MULLIGAN_RESTART_COUNT MULLIGAN_RUN_ID; do
    seen+="$(value $rank $name) "
  done
  check_equal "rank $rank: variables" "$rank 3 $rank 3 0 127.0.0.1 0 lesson " "$seen"
done
check_equal "all have one port" 1 "$(cat environment_? | grep -c "^MASTER_PORT=$(value 0 MASTER_PORT)$" | sed 's/3/1/')"
check_true "the port is one" "$(value 0 MASTER_PORT) > 1023"
check_equal "all have one secret of 64 digits" "1 64" \
  "$(cat environment_? | sed -n 's/^MULLIGAN_SECRET=//p' | sort -u | awk '{ n++; l = length($0) } END { print n, l }')"
check_equal "variables of other launchers are gone" "" "$(cat environment_? | grep -E '^(TORCHELASTIC_|OMPI_COMM_WORLD_|PMI_)')"
check_equal "OMP_NUM_THREADS is the user's" "" "$(value 0 OMP_NUM_THREADS)"
check_equal "standard input is empty" /dev/null "$(cat input_0)"
if (($(nproc) >= 2)); then
  "$mulligan" launch --nproc-per-node 2 --log-dir logs -- ./environment.sh 2>start.err
  check_equal "two ranks do not share CPUs" "" "$(comm -12 <(tr ',' '\n' <cpus_0) <(tr ',' '\n' <cpus_1))"
  "$mulligan" launch --nproc-per-node 2 --bind none --log-dir logs -- ./environment.sh 2>start.err
  check_equal "--bind none" "$(cat cpus_0)" "$(cat cpus_1)"
else
  echo "skipped - two ranks do not share CPUs (there is one)"
fi
MULLIGAN_SECRET=own OMP_NUM_THREADS=3 "$mulligan" launch --standalone --log-dir logs -- ./environment.sh 2>start.err
check_equal "one rank, the user's secret and threads" "1 own 3" "$(value 0 WORLD_SIZE) $(value 0 MULLIGAN_SECRET) $(value 0 OMP_NUM_THREADS)"
CUDA_VISIBLE_DEVICES=0,1,GPU-3 "$mulligan" launch --nproc-per-node auto --log-dir logs -- ./environment.sh 2>start.err
check_equal "auto: one rank per visible GPU" "3 0,1,GPU-3" "$(value 2 WORLD_SIZE) $(value 2 CUDA_VISIBLE_DEVICES)"

"$mulligan" launch --nproc-per-node 2 --log-dir spoken -- ./speak.sh >spoken.out 2>spoken.err
check_equal "standard output is rank 0's" $'rank 0 speaks\na line without its end' "$(cat spoken.out)"
check_equal "standard error is everybody's, with a prefix" $'[rank 1] rank 1 warns\nrank 0 warns' \
  "$(grep -v '^launch: ' spoken.err | LC_ALL=C sort)"
check_contains "the launcher says where the logs are" "spoken/attempt_0" "$(grep '^launch: ' spoken.err)"
for rank in 0 1; do
  check_equal "the log of rank $rank is whole" "a line without its end|rank $rank speaks|rank $rank warns|" \
    "$(grep -v '^# ' spoken/attempt_0/rank_000$rank.log | LC_ALL=C sort | tr '\n' '|')"
done
"$mulligan" launch --nproc-per-node 2 --tee 3 --log-dir spoken -- ./speak.sh >spoken.out 2>spoken.err
check_contains "--tee 3 shows standard output" "[rank 1] rank 1 speaks" "$(cat spoken.out)"
check_equal "an older log is continued" 2 "$(grep -c '^rank 1 speaks' spoken/attempt_0/rank_0001.log)"
"$mulligan" launch --nproc-per-node 2 --redirects 3 --log-dir spoken -- ./speak.sh >spoken.out 2>spoken.err
check_equal "--redirects 3 shows nothing" "" "$(cat spoken.out; grep -v '^launch: ' spoken.err)"

# On a terminal rank 0 has a terminal of the same width and draws its live line; the log keeps what was seen at last.
cat >draw.sh <<'SH'
#!/usr/bin/env bash
await() { until grep -qsa "$1" typescript; do sleep 0.05; done; } # until it is on the terminal
if ((RANK == 0)); then
  [[ -t 1 && -t 2 ]] && echo "a terminal of $(stty size <&2)"
  printf '\r\033[2Khalf done'
  await 'a warning'
  printf '\r\033[2Kall done\n'
else
  await 'half done'
  echo "a warning" >&2
fi
SH
chmod +x draw.sh
if command -v script >/dev/null; then
  TERM=xterm script -qfec "stty rows 30 cols 97; '$mulligan' launch --nproc-per-node 2 --log-dir drawn -- ./draw.sh" typescript >script.out
  check_contains "rank 0 has a terminal of the same size" "a terminal of 30 97" "$(cat typescript)"
  check_contains "another rank's line erases the live line" $'half done\r\033[2K[rank 1] a warning' "$(cat typescript)"
  check_equal "the log has no drawing" "all done" "$(tail -n 1 drawn/attempt_0/rank_0000.log)"
else
  echo "skipped - a terminal (script is not installed)"
fi

check_contains "--dry-run names variables" "  LOCAL_RANK=1" "$("$mulligan" launch --nproc-per-node 2 --dry-run -- train run.toml)"
check_equal "--dry-run shows no secret" "" "$("$mulligan" launch --nproc-per-node 2 --dry-run -- train run.toml | grep -E 'SECRET=[0-9a-f]')"
check "without a slash it is a command of mulligan" bash -c "'$mulligan' launch --log-dir own -- completion man | grep -q mulligan"
check_refused "no such program" 2 "'./absent.sh' cannot be started" launch --log-dir logs -- ./absent.sh
check_refused "no command" 2 "after \`--\`" launch --nproc-per-node 2
check_refused "itself" 2 "cannot start itself" launch -- launch
check_refused "a node that does not exist" 2 "--node-rank 2" launch --nnodes 2 --node-rank 2 --rdzv-endpoint host -- completion man
check_refused "several nodes without a meeting place" 2 "--rdzv-endpoint" launch --nnodes 2 -- completion man
check_refused "several nodes without a secret" 2 "MULLIGAN_SECRET" launch --nnodes 2 --rdzv-endpoint host -- completion man
check_refused "a port that is none" 2 "HOST:PORT" launch --nnodes 2 --rdzv-endpoint host:99999 -- completion man
check_refused "a number of ranks that is none" 2 "'many'" launch --nproc-per-node many -- completion man
