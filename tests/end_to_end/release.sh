#!/usr/bin/env bash
# launch/release and its parts refuse each wrong input in one sentence before anything is built. The bill of materials
# names packages of this machine. A person makes a whole release (docs/bundle.md).
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

mkdir -p tree/launch
cp "$root/CMakeLists.txt" "$root/CHANGELOG.md" tree/
cp "$root/launch/release" tree/launch/
version=$(sed -n 's/^project(mulligan VERSION \([0-9.]*\).*/\1/p' "$root/CMakeLists.txt")
git() { command git -C tree -c user.name=test -c user.email=test@test.invalid "$@"; }
git init -q && git add . && git commit -qm "All"

# refused WHAT CODE TEXT COMMAND...: one line on standard error, and that exit code.
refused() {
  local what=$1 code=$2 text=$3 seen
  shift 3
  seen=$("$@" 2>&1 >/dev/null)
  local ended=$?
  if [[ $ended == "$code" && $(wc -l <<<"$seen") == 1 && $seen == *"$text"* ]]; then pass "$what"
  else flunk "$what" "exit code $ended: $seen"; fi
}
refused "a release of a commit without its tag" 1 "has no tag v$version" tree/launch/release
git tag "v$version"
echo more >>tree/CHANGELOG.md
refused "a release of a tree with changes" 1 "the tree has changes" tree/launch/release
git checkout -q CHANGELOG.md
touch tree/new
refused "a release of a tree with files that git does not know" 1 "files that git does not know" tree/launch/release
rm tree/new
sed -i "s/^## $version/## 0.0.0/" tree/CHANGELOG.md && git commit -qam "No section" && git tag -f "v$version" >/dev/null
refused "a release without a section of CHANGELOG.md" 1 "no section '## $version'" tree/launch/release
refused "a release into a folder that exists" 2 "exists" tree/launch/release "$work/tree"
refused "an option that launch/release does not have" 2 "unknown option '--fast'" tree/launch/release --fast
check_equal "the version has its section of CHANGELOG.md" 1 "$(grep -c "^## $version\b" "$root/CHANGELOG.md")"
check_contains "the program's version is CMakeLists.txt's" "mulligan $version (commit " "$("$mulligan" --version)"
refused "a wheel of a folder that is no bundle" 1 "has no bin/mulligan" "$root/launch/python/wheel" "$work/tree" wheels
refused "a bill of materials of no folder" 1 "name the tree" "$root/launch/bill_of_materials" nowhere

mkdir -p carried/lib/mulligan
library=$(ldconfig -p | sed -n 's/^\tlibdnnl\.so\.[0-9]* .* => \(.*\)/\1/p' | head -n 1)
cp -L "$library" carried/lib/mulligan/
touch carried/lib/mulligan/libnobody.so.9
refused "a library of no package" 1 "no package here has the library 'libnobody.so.9'" "$root/launch/bill_of_materials" carried
rm carried/lib/mulligan/libnobody.so.9
"$root/launch/bill_of_materials" carried >bill.json 2>bill.err || flunk "the bill of materials is made" "$(cat bill.err)"
check "it has the library with package, version and sha256, and the headers" python3 - "$library" <<'PY'
import hashlib
import json
import sys
bill = json.load(open("bill.json"))
[carried] = [one for one in bill["components"] if "components" in one]
assert carried["name"].startswith("libdnnl") and carried["version"] in carried["purl"], carried
assert carried["components"][0]["hashes"][0]["content"] == hashlib.sha256(open(sys.argv[1], "rb").read()).hexdigest()
assert "nlohmann-json3-dev" in {one["name"] for one in bill["components"]}
assert carried["bom-ref"] in bill["dependencies"][0]["dependsOn"]
PY
