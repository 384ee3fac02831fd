#!/usr/bin/env bash
# The Debian package: what is in it, and that it runs in a root that holds nothing but what it depends on.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

command -v cpack >/dev/null && command -v dpkg-shlibdeps >/dev/null && command -v file >/dev/null || {
  echo "skipped - the Debian package (cpack, dpkg-dev or file is not installed)"
  check "the installation's script is there" test -f "$build/cmake_install.cmake"
  finish
}
cpack -G DEB --config "$build/CPackConfig.cmake" -B "$work/package" >cpack.log 2>&1
check_equal "cpack -G DEB" 0 $?
deb=$(find "$work/package" -maxdepth 1 -name 'mulligan_*.deb')
[[ -f $deb ]] || { flunk "there is one package" "$(tail cpack.log)"; finish; }
depends=$(dpkg-deb -f "$deb" Depends)
for library in libc6 libfmt libssl libsentencepiece libdnnl libbrotli; do
  check_contains "it depends on $library" "$library" "$depends"
done
contents=$(dpkg-deb -c "$deb" | awk '{ print $6 }')
for file in usr/bin/mulligan usr/lib/mulligan/plugins/mulligan_cpu.so usr/share/doc/mulligan/LICENSE usr/share/doc/mulligan/README.md \
  usr/share/doc/mulligan/docs/configuration.md usr/share/mulligan/configs/quickstart.toml usr/share/man/man1/mulligan.1.gz \
  usr/share/bash-completion/completions/mulligan usr/share/zsh/vendor-completions/_mulligan; do
  check_contains "it holds $file" "./$file" "$contents"
done
check_equal "it holds every plugin" "$(find "$build/lib/mulligan/plugins" -name '*.so' | wc -l)" \
  "$(grep -c '/plugins/mulligan_.*\.so$' <<<"$contents")"
for file in usr/include/mulligan/abi.h usr/lib/cmake/mulligan/mulliganConfig.cmake usr/share/doc/mulligan/copyright usr/share/doc/mulligan/changelog.gz; do
  check_contains "it holds $file" "./$file" "$contents"
done
check_equal "no script that works in the source tree only" "" "$(grep '/configs/.*/run$' <<<"$contents")"
if command -v lintian >/dev/null; then
  check "lintian finds no error" lintian --allow-root --fail-on error "$deb"
else
  echo "skipped - lintian (not installed)"
fi

# A bare root: apt resolves the dependencies as for a system that has nothing, their files are unpacked, and dpkg installs
# the package there, which it refuses where a dependency is missing.
root=$work/root
mkdir -p root/var/lib/dpkg/{info,updates} archives/partial
: >empty_status
if ((EUID != 0)); then
  echo "skipped - the package in a bare root (needs root)"
elif ! apt-get install -y -qq --no-install-recommends --download-only -o Dir::State::status="$work/empty_status" \
  -o Dir::Cache::archives="$work/archives" -o Debug::NoLocking=1 "$deb" >apt.log 2>&1; then
  echo "skipped - the package in a bare root (apt cannot fetch its dependencies: $(grep -m1 '^E:' apt.log))"
else
  for one in archives/*.deb; do
    dpkg-deb -x "$one" root
    dpkg-deb -f "$one" | sed '1a Status: install ok installed' >>root/var/lib/dpkg/status
    echo >>root/var/lib/dpkg/status
  done
  rm archives/*.deb
  : >root/var/lib/dpkg/info/format && echo 1 >root/var/lib/dpkg/info/format
  sed '/^Package: libsentencepiece0$/,/^$/d' root/var/lib/dpkg/status >without
  cp -r root/var/lib/dpkg lacking && cp without lacking/status
  if dpkg --root="$root" --admindir="$work/lacking" -i "$deb" >dpkg.log 2>&1; then
    flunk "dpkg refuses it where a library is missing"
  else
    check_contains "dpkg refuses it where a library is missing" "libsentencepiece0" "$(cat dpkg.log)"
  fi
  dpkg --root="$root" -i "$deb" >dpkg.log 2>&1
  check_equal "dpkg installs it" "0" "$?"
  # Of /proc, which every container has, the program needs one link: to itself.
  mkdir -p root/proc/self && ln -s /usr/bin/mulligan root/proc/self/exe
  check_contains "mulligan --version runs there" "mulligan 1." "$(chroot root /usr/bin/mulligan --version 2>&1)"
  plugins=$(chroot root /usr/bin/mulligan plugins 2>&1)
  for plugin in cpu muon softcap_ce warmdown gptq doc_lora; do
    check_contains "mulligan plugins finds $plugin" "$plugin" "$plugins"
  done
  check "and loads one with its libraries" chroot root /usr/bin/mulligan plugins cpu
  check "configurations check there" chroot root /usr/bin/mulligan config check /usr/share/mulligan/configs/quickstart.toml
  dpkg --root="$root" -r mulligan >dpkg.log 2>&1
  check_equal "removed, it leaves nothing" "" "$(find root/usr/bin/mulligan root/usr/lib/mulligan root/usr/share/mulligan 2>/dev/null)"
fi
