#!/usr/bin/env bash
# The scripts that make the portable bundle (cmake/bundle), on the build that tests/run made: what is carried, that the
# program runs with it, and that inspect refuses each fault planted into the tree. tests/bundle/check tests the bundle itself,
# which is built for other CPUs.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"
scripts=$root/cmake/bundle

good=$work/good
cmake --install "$build" --component runtime --strip --prefix "$good" >install.log 2>&1 || flunk "installs" "$(cat install.log)"
check "collect" "$scripts/collect" "$good"
check "inspect finds no fault" "$scripts/inspect" "$good"
for library in libdnnl libOpenCL libsentencepiece libcrypto libbrotlicommon libgomp; do
  check "carried: $library" test -s "$good/lib/mulligan/$library.so."*
done
check_equal "not carried: the C and C++ libraries" "" "$(ls "$good"/lib/mulligan/lib{c,m,stdc++,gcc_s}.so* "$good"/lib/mulligan/ld-linux* 2>/dev/null)"
# What a pod with Ubuntu 22.04 has: glibc 2.35, and libstdc++ of GCC 12.
newest() { find "$good" -type f \( -name '*.so*' -o -path '*/bin/*' \) -exec objdump -T {} + 2>/dev/null | grep -o "$1_[0-9.]*" | sort -Vu | tail -n 1; }
if [[ $(printf '%s\n' 2.36 "$(getconf GNU_LIBC_VERSION | cut -d ' ' -f 2)" | sort -V | tail -n 1) == 2.36 ]]; then
  check_equal "needs glibc 2.35 at most" GLIBC_2.35 "$(printf '%s\n' GLIBC_2.35 "$(newest GLIBC)" | sort -V | tail -n 1)"
  check_equal "and the C++ library of GCC 12" GLIBCXX_3.4.30 "$(printf '%s\n' GLIBCXX_3.4.30 "$(newest GLIBCXX)" | sort -V | tail -n 1)"
fi
check_equal "each licence has text" "" "$(find "$good/licences" -size 0)"
check "the long licences are there" test -s "$good/licences/common/Apache-2.0"

# Where the loader finds what: from the bundle, or of the C library.
outside() { # outside FILE...: libraries found elsewhere, without those of the C library
  env -u LD_LIBRARY_PATH ldd "$@" | sed -n 's/^\t\([^/ ]*\) => \([^(]*\).*/\1 \2/p' | grep -v " $good/" |
    (source "$scripts/system_libraries.bash"; while read -r name path; do is_system_library "$name" || echo "$name $path"; done)
}
check_equal "program and plugins find their libraries in the bundle" "" "$(outside "$good/bin/mulligan" "$good"/lib/mulligan/*/*.so)"
mv "$good" moved && good=$work/moved
check_contains "the program runs elsewhere" "Exit codes" "$(env -i "$good/bin/mulligan" --help 2>&1)"
check_contains "and finds its plugins" "$good/lib/mulligan/plugins" "$(env -i "$good/bin/mulligan" plugins 2>&1)"
# Seen in the loader's own account, since dlopen is not what ldd does: the oneDNN that the cpu plugin gets.
small_config /nowhere >small.toml
seen=$(LD_DEBUG=libs LD_DEBUG_OUTPUT=$work/loader "$good/bin/mulligan" profile small.toml 2>&1)
check_contains "a plugin's libraries come from the bundle" "calling init: $good/lib/mulligan/plugins/../libdnnl.so" "$(cat loader.* 2>/dev/null || echo "$seen")"
check_contains "and theirs" "calling init: $good/lib/mulligan/plugins/../libOpenCL.so" "$(cat loader.* 2>/dev/null)"

# Test-time training is checked by a process that reaches few files: the carried libraries are among them. oneDNN has a name here that
# no system has, so that the system's cannot take its place.
cp -a "$good" renamed
sed -i 's/libdnnl\.so/libdnnX.so/' renamed/lib/mulligan/plugins/mulligan_cpu.so
for library in renamed/lib/mulligan/libdnnl.so.*; do mv "$library" "${library/libdnnl/libdnnX}"; done
tiny_corpus corpus
record_config data >scored.toml
check "a bundle's library of its own: prepare" renamed/bin/mulligan prepare corpus --out data --vocab-size 512 --validation-documents 2
check "a bundle's library of its own: train" renamed/bin/mulligan train scored.toml --set train.steps=2
check "a bundle's library of its own: ttt" renamed/bin/mulligan ttt runs/small

# refused WHAT TEXT [OPTIONS]: inspect of the tree `bad` names the fault. Afterwards `bad` is a fresh copy.
fresh() { rm -rf bad && cp -a "$good" bad; }
refused() {
  local what=$1 text=$2 seen
  shift 2
  if seen=$("$scripts/inspect" bad "$@" 2>&1); then flunk "refused: $what" "$seen"; else check_contains "refused: $what" "$text" "$seen"; fi
  fresh
}
fresh
plugins=bad/lib/mulligan/plugins
rm bad/lib/mulligan/libdnnl.so.*
refused "a library that is missing" "mulligan_cpu.so needs libdnnl"
cp /lib/x86_64-linux-gnu/libm.so.6 bad/lib/mulligan/
refused "a part of the C library" "libm.so.6 belongs to the C library"
cp "$plugins/mulligan_null.so" bad/lib/mulligan/libcublasLt.so.13
refused "a CUDA library" "libcublasLt.so.13 is a CUDA library"
printf 'built in %s\n' "$root" >>"$plugins/mulligan_null.so"
refused "a folder of the build machine" "mulligan_null.so contains '$root'" --forbid "$root"
refused "a C library newer than wanted" "newer than 2.3;" --glibc 2.3
rm -r bad/licences
refused "no licences" "licences is missing"
cp "$build/lib/mulligan/plugins/mulligan_null.so" "$plugins/mulligan_null.so"
refused "symbols left in" "mulligan_null.so is not stripped"
compile() { cc -O1 -shared -fPIC -s -x c - -o "$plugins/mulligan_null.so" "$@"; }
compile -Wl,--disable-new-dtags,-rpath,/usr/local/lib <<<'int f(void) { return 1; }'
refused "an RPATH of the build machine" "the RPATH '/usr/local/lib'"
compile '-Wl,--enable-new-dtags,-rpath,$ORIGIN/..' <<<'int f(void) { return 1; }'
refused "a RUNPATH" "mulligan_null.so has a RUNPATH"
compile -mavx512f <<<'void f(double* x) { for (int i = 0; i < 8; ++i) x[i] = __builtin_sqrt(x[i]); }' -ftree-vectorize -O3 -fno-math-errno -mprefer-vector-width=512
refused "code for a greater processor" "mulligan_null.so holds instructions beyond x86-64-v3" --cpu x86-64-v3

tree=mulligan-test
mkdir $tree && cp -a "$good"/{LICENSE,README.md,configs,licences} $tree/ && mkdir -p $tree/bin $tree/lib/mulligan/plugins &&
  cp -a "$plugins/mulligan_null.so" $tree/lib/mulligan/plugins/
check "archive" "$scripts/archive" $tree one.tar.xz
touch $tree/LICENSE
"$scripts/archive" $tree two.tar.xz >/dev/null
check_equal "equal trees give equal archives" "$(sha256sum <one.tar.xz)" "$(sha256sum <two.tar.xz)"
mkdir unpacked && tar -C unpacked -xf one.tar.xz
check "the checksums hold after unpacking" sh -c "cd unpacked/$tree && sha256sum --quiet -c SHA256SUMS"
head -c 200000 /dev/urandom >$tree/bin/large
if seen=$("$scripts/archive" $tree large.tar.xz 200000 2>&1); then flunk "an archive beyond the limit is refused"; else
  check_contains "an archive beyond the limit is refused" "more than 200000" "$seen"; fi
check_equal "and not left behind" "" "$(ls large.tar.xz* 2>/dev/null)"
