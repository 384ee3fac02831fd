#!/usr/bin/env bash
# launch/download_fineweb, from a mirror of small files.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

# shard FILE TOKENS: a whole one of zeros.
shard() {
  python3 -c 'import struct, sys
tokens = int(sys.argv[2])
open(sys.argv[1], "wb").write(struct.pack("<3i", 20240520, 1, tokens) + bytes(1012) + bytes(2 * tokens))' "$@"
}
mkdir -p mirror/datasets/fineweb10B_sp8192 mirror/tokenizers
for file in fineweb_val_000000 fineweb_train_000000 fineweb_train_000001; do shard "mirror/datasets/fineweb10B_sp8192/$file.bin" 100; done
echo tokenizer >mirror/tokenizers/fineweb_8192_bpe.model
seq -f '{"text": "document %.0f"}' 60000 >mirror/docs_selected.jsonl
export FINEWEB_URL=file://$work/mirror FINEWEB_DOCUMENTS_URL=file://$work/mirror/docs_selected.jsonl
download() { "$root/launch/download_fineweb" "$@" 2>&1; }

check "shards" download data 2
check_equal "are what the mirror has" "fineweb_train_000000.bin fineweb_train_000001.bin fineweb_val_000000.bin tokenizer.model" "$(cd data && echo *)"
check "documents" download --documents data 2
check_equal "are the first 50,000" "$(head -n 50000 mirror/docs_selected.jsonl | sha256sum)" "$(sha256sum <data/validation_documents.jsonl)"
rm mirror/docs_selected.jsonl
check "what is there is kept" download --documents data 2
sed -i '$d' data/validation_documents.jsonl
check_contains "an incomplete file is fetched anew" "gave 0 lines instead of 50000" "$(download --documents data 2)"
check_contains "an unknown option" "'--docs' is no option" "$(download --docs data)"
