// Input: the text of manifest.json. Its folder holds one sound shard, a tokenizer and a text to refer to.
#include <vector>

#include "framework/core/file.h"
#include "framework/data/manifest.h"
#include "framework/data/shard.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/scratch_folder.h"

namespace mulligan::fuzz {
namespace {

class DataFolder {
 public:
  DataFolder() {
    write_shard(folder_ / "t.bin", std::vector<std::uint16_t>{1, 2, 3});
    write_bytes(folder_ / "t.model", "tokenizer");
    write_bytes(folder_ / "t.txt", "text");
  }
  const std::filesystem::path& path() const { return folder_.path(); }

 private:
  test_support::ScratchFolder folder_;
};

std::string saved(const Manifest& manifest) {
  static const test_support::ScratchFolder folder;
  save_manifest(folder.path(), manifest);
  return read_file(folder / "manifest.json");
}

}  // namespace

void data_manifest(std::string_view input) {
  static const DataFolder folder;
  write_bytes(folder.path() / "manifest.json", input);
  const auto manifest = unless_refused([&] { return load_manifest(folder.path()); });
  if (!manifest) return;
  const std::string text = saved(*manifest);
  write_bytes(folder.path() / "manifest.json", text);
  require(saved(load_manifest(folder.path())) == text, "a saved manifest does not read back");
  unless_refused([&] { return verify_manifest(folder.path()); });
}

}  // namespace mulligan::fuzz
