#include "framework/data/shard_checks.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/parallel.h"
#include "framework/core/sha256.h"
#include "framework/data/manifest.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

// What reading a shard once yields.
struct ShardFacts {
  std::string sha256;
  std::uint16_t largest_token = 0;
};

ShardFacts read_facts(const Shard& shard) {
  constexpr std::size_t block_bytes = std::size_t{1} << 20;
  static_assert(kShardHeaderBytes % sizeof(std::uint16_t) == 0 && block_bytes % sizeof(std::uint16_t) == 0);
  ShardFacts facts;
  Sha256 hash;
  std::vector<std::uint16_t> block(block_bytes / sizeof(std::uint16_t));
  const std::uint64_t size = shard.file().size();
  for (std::uint64_t begin = 0; begin < size; begin += block_bytes) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(block_bytes, size - begin));
    const auto bytes = std::as_writable_bytes(std::span(block)).first(count);
    shard.file().read(begin, bytes);
    hash.update(std::span<const std::byte>(bytes));
    const std::size_t header = begin == 0 ? kShardHeaderBytes / sizeof(std::uint16_t) : 0;
    for (std::size_t i = header; i < count / sizeof(std::uint16_t); ++i) {
      facts.largest_token = std::max(facts.largest_token, block[i]);
    }
  }
  facts.sha256 = hash.hex();
  return facts;
}

// Commands open the same shards several times (validation and quantisation of one process), so what was read
// is kept, by the bytes that a name stood for.
ShardFacts facts_of(const Shard& shard) {
  static std::mutex mutex;
  static std::map<FileStamp, ShardFacts> known;
  {
    const std::lock_guard lock(mutex);
    const auto found = known.find(shard.file().stamp());
    if (found != known.end()) return found->second;
  }
  ShardFacts facts = read_facts(shard);
  const std::lock_guard lock(mutex);
  return known[shard.file().stamp()] = std::move(facts);
}

const char* key_of(DataSplit split) {
  return split == DataSplit::train ? "data.train" : "data.validation";
}

void require_listed(const Shard& shard, const ShardFacts& facts, const Manifest& manifest, DataSplit split) {
  const ShardRecord* training = manifest.train.find(shard.path());
  const ShardRecord* record = training ? training : manifest.validation.find(shard.path());
  data_error_if(
      !record,
      "'{}' is not in the manifest next to it, so it is not known which tokenizer made it; move it to a "
      "folder of its own or prepare the data again",
      shard.path().string());
  data_error_if(
      split == DataSplit::train && !training,
      "data.train names '{}', a validation shard by the manifest next to it, so the score would be of text "
      "that was trained on; set data.train to the folder '{}' or to its training shards",
      shard.path().string(), folder_of(shard.path()).string());
  data_error_if(record->tokens != static_cast<std::uint64_t>(shard.token_count()),
                "'{}' holds {} tokens but the manifest next to it says {}; prepare or download it again",
                shard.path().string(), shard.token_count(), record->tokens);
  require_digest(shard.path(), facts.sha256, record->sha256);
}

void require_tokenizer(const fs::path& shard, const Manifest& manifest, const ShardUse& use) {
  if (use.tokenizer_file.empty() || manifest.tokenizer_sha256 == use.tokenizer_sha256) return;
  throw data_error(
      "'{}' was made with the tokenizer {} by the manifest next to it, but data.tokenizer = '{}' has sha256 "
      "{}; set data.tokenizer to '{}' or {} to shards of that tokenizer",
      shard.string(), short_digest(manifest.tokenizer_sha256), use.tokenizer_file,
      short_digest(use.tokenizer_sha256), (folder_of(shard) / manifest.tokenizer_file).string(),
      key_of(use.split));
}

void require_tokens(const Shard& shard, const ShardFacts& facts, const ShardUse& use) {
  const std::int64_t limit = use.pieces > 0 ? use.pieces : use.vocabulary;
  if (facts.largest_token < limit) return;
  const std::vector<std::uint16_t> tokens = shard.read_all();
  const auto outside = std::ranges::find_if(tokens, [&](std::uint16_t token) { return token >= limit; });
  const std::string what = fmt::format("shard '{}' has token {} at position {}", shard.path().string(),
                                       *outside, outside - tokens.begin());
  data_error_if(
      use.pieces > 0,
      "{}, beyond the {} pieces of the tokenizer '{}': it was made with another tokenizer or is damaged; "
      "set data.tokenizer and {} to what belongs together",
      what, use.pieces, use.tokenizer_file, key_of(use.split));
  throw data_error(
      "{}, beyond model.vocabulary = {}; raise model.vocabulary to the size of the tokenizer that made the "
      "shard, or set {} to other shards",
      what, use.vocabulary, key_of(use.split));
}

}  // namespace

std::string check_vocabulary(std::int64_t vocabulary, std::int64_t pieces, const std::string& tokenizer,
                             bool exact) {
  config_error_if(
      vocabulary < pieces,
      "model.vocabulary = {} is smaller than the {} pieces of the tokenizer '{}'; set model.vocabulary = {}",
      vocabulary, pieces, tokenizer, pieces);
  config_error_if(exact && vocabulary > pieces,
                  "model.vocabulary = {}, but the tokenizer '{}' has {} pieces, so that the other "
                  "{} ids would never occur; set model.vocabulary = {}, or prepare the data anew "
                  "with --vocab-size {} (data.exact_vocabulary = false takes them as padding)",
                  vocabulary, tokenizer, pieces, vocabulary - pieces, pieces, vocabulary);
  if (vocabulary == pieces) return {};
  constexpr std::int64_t usual_padding = 128;
  const bool usual = vocabulary <= (pieces + usual_padding - 1) / usual_padding * usual_padding;
  return fmt::format(
      "{}model.vocabulary = {} is padded: the tokenizer has {} pieces, the other {} ids never occur",
      usual ? "" : "warning: ", vocabulary, pieces, vocabulary - pieces);
}

CheckedShards check_shards(const std::vector<fs::path>& files, const ShardUse& use) {
  const std::vector<Shard> shards(files.begin(), files.end());
  NearManifests manifests;
  for (const fs::path& file : files) manifests.next_to(file);
  std::vector<ShardFacts> facts(shards.size());
  parallel_for(shards.size(), 0, [&](std::size_t i) { facts[i] = facts_of(shards[i]); });

  CheckedShards checked;
  std::vector<ShardIdentity> identities;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const Shard& shard = shards[i];
    if (const Manifest* manifest = manifests.next_to(files[i])) {
      require_listed(shard, facts[i], *manifest, use.split);
      require_tokenizer(files[i], *manifest, use);
      static_cast<void>(check_vocabulary(use.vocabulary, manifest->vocabulary,
                                         (folder_of(files[i]) / manifest->tokenizer_file).string()));
      data_error_if(
          !checked.tokenizer_sha256.empty() && checked.tokenizer_sha256 != manifest->tokenizer_sha256,
          "{} names shards of two tokenizers, {} and {}; name those of one", key_of(use.split),
          short_digest(checked.tokenizer_sha256), short_digest(manifest->tokenizer_sha256));
      checked.tokenizer_sha256 = manifest->tokenizer_sha256;
    }
    require_tokens(shard, facts[i], use);
    checked.stamps.push_back(shard.file().stamp());
    identities.push_back(
        {shard.path().filename().string(), static_cast<std::uint64_t>(shard.token_count()), facts[i].sha256});
  }
  checked.identity = shard_set(std::move(identities));
  return checked;
}

}  // namespace mulligan
