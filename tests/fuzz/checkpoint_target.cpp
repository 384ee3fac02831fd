// Input: the text of manifest.json, a line ====, and the tensors: the JSON header of a safetensors file, a
// line ====, and its data; or, where that part does not start with '{', the file as it is. @BYTES@ and
// @SHA256@ in the manifest stand for size and digest of the tensors' file, and the manifest's own digest
// is always right:
// the fuzzer is to get past the sums.
#include <algorithm>

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/config/run_config.h"
#include "framework/core/file.h"
#include "framework/data/loader.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/scratch_folder.h"

namespace mulligan::fuzz {
namespace {

std::string filled(std::string text, const std::string& mark, const std::string& value) {
  const std::size_t at = text.find(mark);
  return at == std::string::npos ? text : text.replace(at, mark.size(), value);
}

bool same_tensors(const SafetensorsFile& a, const SafetensorsFile& b) {
  const auto same = [&](const StoredTensor& tensor) {
    const StoredTensor* other = b.find(tensor.name);
    return other && other->type == tensor.type && other->shape == tensor.shape &&
           std::ranges::equal(other->bytes, tensor.bytes);
  };
  return a.tensors().size() == b.tensors().size() && std::ranges::all_of(a.tensors(), same);
}

void write_again(const Checkpoint& read, const std::filesystem::path& path) {
  require(manifest_from_json(to_json(read.manifest), "again") == read.manifest,
          "a manifest does not read back");
  write_safetensors(path, read.tensors.tensors(), read.tensors.metadata());
  require(same_tensors(SafetensorsFile(path), read.tensors), "tensors do not read back");
}

// What a resuming trainer does with the manifest.
void continue_from(const CheckpointManifest& manifest, const std::filesystem::path& shard) {
  LossAccount account(10);
  account.restore(manifest.loss);
  account.last_steps();
  account.inconsistency();
  account.add(account.step_last(), 3.0, 1, "plain");
  unless_refused([&] { return parse_saved_config(manifest.config, "checkpoint").file; });
  unless_refused([&] {
    Loader loader({.shards = {shard}, .row_tokens = 3, .parts = {}});
    LoaderPosition position = manifest.data.position;
    position.parts.clear();
    loader.restore(position);
    Batch batch;
    for (int i = 0; i < 5; ++i) loader.next(batch);
    return true;
  });
}

}  // namespace

void checkpoint(std::string_view input) {
  static const test_support::ScratchFolder folder;
  const std::filesystem::path shard = folder / "train_000.bin";
  if (!std::filesystem::exists(shard)) write_shard(shard, std::vector<std::uint16_t>(16, 1));
  const std::string_view manifest = take_part(input);
  std::string tensors(input);
  if (input.starts_with('{')) {
    const std::string_view header = take_part(input);
    tensors = safetensors_of(header, input);
  }
  std::string text = filled(std::string(manifest), "@BYTES@", std::to_string(tensors.size()));
  text = filled(std::move(text), "@SHA256@", sha256_hex(tensors));
  write_bytes(folder / checkpoint_tensors_file, tensors);
  write_bytes(folder / "manifest.json", text);
  write_bytes(folder / "manifest.json.sha256", sha256_hex(text) + "  manifest.json\n");
  const auto read = unless_refused([&] { return open_checkpoint(folder.path()); });
  if (!read) return;
  write_again(*read, folder / "again.safetensors");
  continue_from(read->manifest, shard);
}

}  // namespace mulligan::fuzz
