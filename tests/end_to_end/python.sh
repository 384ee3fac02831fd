#!/usr/bin/env bash
# The Python module of launch/python against the built program. Each of its own tests (unittest) is one check here.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

python=${MULLIGAN_PYTHON:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
  echo "skipped - the Python module ($("$python" --version) is older than 3.11)"
  check "the program prints its version" "$mulligan" --version
  finish
}
tiny_data --validation-documents 2
record_config "$work/data" >small.toml
export MULLIGAN_PROGRAM=$mulligan PYTHONPATH=$root/launch/python PYTHONDONTWRITEBYTECODE=1
"$python" -m unittest discover --verbose --start-directory "$root/launch/python/tests" >/dev/null 2>report
code=$?
# A line for each test: "test_x (test_mulligan.Program.test_x) ... ok".
sed -nE "s/^(test_\w+) \(\w+\.(\w+)\..* \.\.\. (.*)/\3 \2: \1/p" report | sed -E '
  s/^ok /ok - /
  s/^skipped .(.*). (\w+: .*)/skipped - \2 (\1)/
  s/^(FAIL|ERROR) /not ok - /'
check_equal "all of the module's tests passed" 0 "$code"
((code == 0)) || { not_ok=1; sed -n '/^=====/,$s/^/    /p' report; }
