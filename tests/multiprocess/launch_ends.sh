#!/usr/bin/env bash
# mulligan launch, with shell scripts as ranks: exit codes and the sentence that names the root cause, restarts, signals.
source "$(dirname "${BASH_SOURCE[0]}")/ranks.bash"
make_act
long="sleep 60 & trap 'kill %1; exit 4' TERM; wait"

# launch WHAT CODE [OPTION...]: three ranks end with that exit code; what the launcher printed is in end.err.
launch() {
  local what=$1 code=$2
  shift 2
  rm -f said_*
  "$mulligan" launch --nproc-per-node 3 --log-dir logs "$@" -- ./act.sh >end.out 2>end.err
  check_equal "$what: exit code" "$code" $?
  sentence=$(grep '^mulligan: ' end.err)
}

launch "all is well" 0
check_equal "all is well: no sentence" "" "$sentence"
RANK_1="exit 7" RANK_0=$long launch "one fails" 7
check_contains "one fails: its name and code" "rank 1 on $(uname -n) failed with exit code 7; its log is logs/attempt_0/rank_0001.log." "$sentence"
RANK_2="echo 'mulligan: the disk is full.' >&2; exit 1" launch "what it said" 1
check_contains "what it said is repeated" "exit code 1 (the disk is full);" "$sentence"
RANK_1='((MULLIGAN_RESTART_COUNT == 2)) || exit 1' launch "two restarts" 0 --max-restarts 2
check_equal "two restarts: of all ranks, counted" "0 1 2 0 1 2 0 1 2 " "$(cut -d' ' -f1 said_? | tr '\n' ' ')"
check "two restarts: each attempt has its logs" test -s logs/attempt_2/rank_0002.log
RANK_1='exit 6' launch "no restart left" 6 --max-restarts 1
check_equal "no restart left: attempts" 2 "$(wc -l <said_1)"

# Signals. Each rank writes what it gets.
cat >obey.sh <<'SH'
#!/usr/bin/env bash
for name in INT TERM HUP USR1; do trap "echo $name >>signals_$RANK" $name; done
touch ready_$RANK
for ((i = 0; i < 600; i++)); do
  sleep 0.1
  [[ -z $STUBBORN && -s signals_$RANK ]] && sleep 0.3 && exit 4
done
SH
chmod +x obey.sh
# begin: starts two of them in the background; $launcher is the process.
begin() {
  rm -f ready_* signals_*
  "$mulligan" launch --nproc-per-node 2 --max-restarts 3 --log-dir logs -- ./obey.sh >signal.out 2>signal.err &
  launcher=$!
  wait_until test -e ready_0 -a -e ready_1
}
export STUBBORN=
for name in INT TERM HUP USR1; do
  begin
  kill -$name $launcher
  check_code "SIG$name: exit code" 4 wait $launcher
  check_equal "SIG$name reaches each rank once" "$name $name " "$(cat signals_0 signals_1 | tr '\n' ' ')"
  check_contains "SIG$name: said" "stopped by SIG$name" "$(grep '^mulligan: ' signal.err)"
done
begin
kill -STOP "$(pgrep -P "$(pgrep -P $launcher)" | head -n 1)"
kill -TERM $launcher
check_code "a rank that stands still is woken to end" 4 wait $launcher
STUBBORN=1
begin
kill -INT $launcher
wait_for signals_0 signals_1
kill -INT $launcher
check_code "a second signal: exit code" 4 wait $launcher
check_contains "a second signal kills" "2 of 2 ranks had to be killed" "$(cat signal.err)"
check_equal "a second signal kills at once, not after 30 seconds" "" "$(grep "within 30 seconds" signal.err)"
check_equal "a second signal is not passed on" "INT" "$(cat signals_1)"
if [[ -n ${MULLIGAN_LONG_TESTS:-} ]]; then
  sed -i 's/600/2000/' obey.sh
  begin
  kill -TERM $launcher
  check_code "ranks that do not end are killed after 30 seconds: exit code" 4 wait $launcher
  check_contains "ranks that do not end are killed after 30 seconds" "2 of 2 ranks had to be killed" "$(cat signal.err)"
fi
