// Input: six bytes of options, then a shard. The token count in its header is put right unless the first
// option byte is odd, since almost no random change would keep it so.
#include <algorithm>
#include <cstring>

#include "framework/data/documents.h"
#include "framework/data/eval_rows.h"
#include "framework/data/loader.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/scratch_folder.h"

namespace mulligan::fuzz {
namespace {

constexpr std::size_t option_bytes = 6;

struct Options {
  bool as_it_is;
  std::int64_t row_tokens, max_segment, stride;
  int world_size, vocabulary, rank;
};

Options options_of(std::string_view bytes) {
  const auto byte = [&](std::size_t i) { return static_cast<int>(static_cast<unsigned char>(bytes[i])); };
  Options o{byte(0) % 2 == 1, byte(1), byte(2), byte(3), byte(4) % 8, (byte(5) + 1) * 256, 0};
  o.rank = byte(0) / 2 % 8;
  return o;
}

void score_rows(std::span<const std::uint16_t> tokens, const Options& o) {
  const auto count = static_cast<std::int64_t>(tokens.size());
  Batch batch;
  const auto fill = [&](const std::vector<EvalSpan>& spans, std::int64_t row_tokens) {
    for (std::size_t i = 0; i < std::min<std::size_t>(spans.size(), 8); ++i) {
      fill_eval_row(tokens, spans[spans.size() - 1 - i], row_tokens, 1, o.max_segment, batch);
    }
    return true;
  };
  EvalConfig eval{.sequence_length = o.row_tokens, .stride = o.stride, .packed_sequences = 2};
  eval.drop_remainder = o.as_it_is;
  for (const EvalMode mode : {EvalMode::rows, EvalMode::sliding}) {
    eval.mode = mode;
    unless_refused([&] { return fill(eval_rows(count, eval, o.world_size, o.rank), 2 * o.row_tokens); });
  }
}

void group_documents(std::span<const std::uint16_t> tokens, const Options& o) {
  const std::vector<Document> documents = find_documents(tokens);
  std::int64_t covered = 0;
  for (const Document& document : documents) covered += document.length;
  const auto overlaps = static_cast<std::int64_t>(documents.size()) - 1;  // each holds the next one's BOS
  require(documents.empty() ||
              documents.front().start + covered - overlaps == static_cast<std::int64_t>(tokens.size()),
          "the documents do not cover the tokens");
  unless_refused(
      [&] { return batch_documents(documents, o.world_size, DocumentOrder::longest_first).size(); });
}

// Reads on from the start, and again from the position reached halfway.
void load_rows(const std::filesystem::path& path, const Options& o) {
  Loader loader({.shards = {path, path},
                 .row_tokens = o.row_tokens,
                 .max_segment_tokens = o.max_segment,
                 .world_size = o.world_size,
                 .rank = o.rank,
                 .vocabulary = o.vocabulary,
                 .parts = {}});
  Batch batch;
  LoaderPosition halfway;
  for (int i = 0; i < 12; ++i) {
    loader.next(batch);
    if (i == 5) halfway = loader.position();
  }
  const LoaderPosition end = loader.position();
  const std::vector<std::int32_t> last = batch.tokens;
  require(loader.position_after(end.consumed_spans) == end, "position_after is not the position reached");
  loader.restore(halfway);
  for (int i = 6; i < 12; ++i) loader.next(batch);
  require(loader.position() == end && batch.tokens == last, "a restored loader reads something else");
}

}  // namespace

void shard(std::string_view input) {
  if (input.size() < option_bytes) return;
  const Options options = options_of(input);
  std::string bytes(input.substr(option_bytes));
  if (!options.as_it_is && bytes.size() >= kShardHeaderBytes) {
    const auto count = static_cast<std::int32_t>((bytes.size() - kShardHeaderBytes) / 2);
    std::memcpy(bytes.data() + 8, &count, sizeof count);
    bytes.resize(kShardHeaderBytes + 2 * static_cast<std::size_t>(count));
  }
  static const test_support::ScratchFolder folder;
  const std::filesystem::path path = folder / "train_000.bin";
  write_bytes(path, bytes);
  const auto read = unless_refused([&] { return Shard(path); });
  if (!read) return;
  const std::vector<std::uint16_t> tokens = read->read_all();
  group_documents(tokens, options);
  score_rows(tokens, options);
  unless_refused([&] {
    load_rows(path, options);
    return true;
  });
}

}  // namespace mulligan::fuzz
