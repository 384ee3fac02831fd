#!/usr/bin/env bash
# docs/reproduce_pr1886.md as a stranger types it: its command blocks, in order, in one shell, in an empty folder that has the source
# tree's files and the archive. Stubs stand in for nvidia-smi, pip, the first hour's rows and NVIDIA's libraries (tests/gpu_pipeline); data and model
# are small, and two ranks take the place of eight. The last block, the record, is not run: strict rules want the text of the validation
# shards, 50,000 documents of them, which the small shards do not have.
source "$(dirname "${BASH_SOURCE[0]}")/../end_to_end/cli_checks.bash"
source "$root/tests/multiprocess/small_record.bash"
page=$root/docs/reproduce_pr1886.md
plugin=$build/tests/gpu_pipeline/plugins/mulligan_cuda.so
[[ -e $plugin ]] || {
  echo "skipped - the page: the stubs are built where the headers of CUDA and cuDNN are"
  exit 0
}
tiny_corpus text
"$mulligan" prepare text --out data --vocab-size 512 --validation-documents 2 >/dev/null || exit 1

# The mirror that the data comes from: the small shards under the names of the published ones.
shards=mirror/datasets/fineweb10B_sp8192
mkdir -p $shards mirror/tokenizers pod/configs/records pod/tests/gpu bin
cp data/fineweb_val_000000.bin $shards/
for ((i = 0; i < 128; i++)); do ln data/fineweb_train_000000.bin "$shards/$(printf fineweb_train_%06d.bin "$i")"; done
cp data/tokenizer.model mirror/tokenizers/fineweb_8192_bpe.model
seq -f '{"text": "document %.0f"}' 50000 >mirror/docs_selected.jsonl
export FINEWEB_URL=file://$work/mirror FINEWEB_DOCUMENTS_URL=file://$work/mirror/docs_selected.jsonl

# The source tree: its own scripts, and the record's files in small.
ln -s "$root/launch" pod/launch
small_record | sed "s/^vocabulary = .*/vocabulary = 512/" >pod/configs/records/pr1886_strict.toml

# stub FILE: a program of what is on standard input.
stub() { { echo "#!/usr/bin/env bash"; cat; } >"$1" && chmod +x "$1"; }
stub pod/tests/gpu/run <<<'echo "| ttt-first | ok |"'
stub bin/nvidia-smi <<<'for i in 1 2 3 4 5 6 7 8; do echo "NVIDIA H100 80GB HBM3, 81559 MiB, 550.54.15"; done'
# python3 -m venv FOLDER: one with the stub of pip, which installs the stubs of NVIDIA's libraries where wheels have them.
stub bin/python3 <<SH
[[ \$1 == -m && \$2 == venv ]] || exec "$(command -v python3)" "\$@"
mkdir -p "\$3/bin"
printf 'export VIRTUAL_ENV=%s PATH=%s:\$PATH\n' "\$PWD/\$3" "\$PWD/\$3/bin" >"\$3/bin/activate"
cp "$work/bin/pip_stub" "\$3/bin/pip"
SH
stub bin/pip_stub <<SH
packages=\$VIRTUAL_ENV/lib/python3.11/site-packages/nvidia
for wheel in cudnn:tests/gpu_device/stub/libcudnn.so.9 cublas:tests/gpu_device/stub/libcublasLt.so.12 \\
  cuda_nvrtc:tests/gpu_device/stub/libnvrtc.so.12 nccl:tests/stub/libnccl.so.2; do
  mkdir -p "\$packages/\${wheel%%:*}/lib"
  ln -s "$build/\${wheel#*:}" "\$packages/\${wheel%%:*}/lib/"
done
SH
# The archive: the program with two ranks for eight, over the stubs.
# The communicator asks the dynamic linker before the wheels, and this machine may have an NCCL of its own there.
mkdir -p mulligan-1-linux-x86_64/bin nccl && ln -s "$build/tests/stub/libnccl.so.2" nccl/
stub mulligan-1-linux-x86_64/bin/mulligan <<SH
export LD_LIBRARY_PATH=$work/nccl
words=()
for word; do
  case \$word in
    8) word=2 ;;
    .) word=$root ;;
  esac
  words+=("\$word")
done
more=(--set backend.path="$plugin" --set backend.cache="$work/cache" --set "data.validation_documents=''")
case \$1 in
  report | --version) more=() ;;
esac
[[ " \$* " != *" --dry-run "* ]] || more=(--set "data.validation_documents=''")
exec "$mulligan" "\${words[@]}" "\${more[@]}"
SH
tar -C . -cJf pod/mulligan-1-linux-x86_64.tar.xz mulligan-1-linux-x86_64

# The page's blocks as one script that ends at the first command that fails, with a line before each block.
awk '/^```sh$/ { inside = 1; if (++block == 8) exit; print "echo \"@@ block " block "\""; next } /^```$/ { if (inside) inside = 0 } inside' "$page" >typed.sh
# shellcheck disable=SC2016 # of the shell that runs the page
echo 'echo "@@ end in $VIRTUAL_ENV"' >>typed.sh
blocks=$(grep -c '^echo "@@ block' typed.sh)
check_true "the page has command blocks, $blocks before the record's" "$blocks == 7"
cd pod || exit 1
export MULLIGAN_STUB_REPORT=$work/judged
if PATH=$work/bin:$PATH bash -eo pipefail "$work/typed.sh" >"$work/typed.out" 2>&1; then pass "the commands of the page end well"
else flunk "the commands of the page end well" "$(tail -n 30 "$work/typed.out"; tail -n 5 ./*.out 2>/dev/null)"; fi
for ((block = 1; block <= blocks; block++)); do check "block $block was begun" grep -q "^@@ block $block$" "$work/typed.out"; done
check_contains "the libraries are those that pip installed" "@@ end in $PWD/libraries" "$(cat "$work/typed.out")"
check_contains "the dry run compares memory with the card" "of the card's 80 GB" "$(cat "$work/typed.out")"
check "training left weights" test -s runs/pod/weights.safetensors
check "quantisation an artifact" test -s runs/pod/artifact.mulligan
# The score lies in `trials/`, since the stubs set other folders.
check "test-time training a score" test -s runs/pod/trials/ttt-*.json
for library in driver cublaslt cudnn nccl; do check "the stub of $library was called" grep -q "^$library"$'\t[1-9]' "$work/judged"; done
echo "skipped - block 8, the record: strict rules want the validation text, 50,000 documents of these very shards; the small ones have none"

# What the page names exists, and its table of failures quotes the program.
for file in $(grep -o '(\([a-z_0-9]*\.md\)' "$page" | tr -d '('); do check "the page's link $file" test -e "$root/docs/$file"; done
for text in "have one GPU" "left, and a tensor takes" "test-time training" "lines instead of"; do
  check "a message that the page quotes is the program's: $text" grep -rqF "$text" "$root/plugins" "$root/framework" "$root/launch"
done
check_true "the page keeps its size" "$(wc -l <"$page") <= 140"
