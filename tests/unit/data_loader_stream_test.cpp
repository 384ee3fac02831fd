// The training stream of data.order = "stream" beyond the reference's fixture (tests/golden/arena_loader_golden_test.cpp):
// resuming under other ranks and batches, its end, shards that are too short, rows of joined documents.
#include <gtest/gtest.h>

#include "framework/data/loader.h"
#include "tests/unit/data_support.h"

namespace mulligan::data_loader_stream_test {
namespace {

namespace fs = std::filesystem;
using Ints = std::vector<std::int32_t>;

// Token k of all shards together is k, but for a BOS every 5 tokens.
LoaderOptions stream_of(const std::string& name, const std::vector<std::size_t>& sizes) {
  const fs::path folder = fresh_folder(name);
  LoaderOptions options;
  std::uint16_t next = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    std::vector<std::uint16_t> tokens(sizes[i]);
    for (std::uint16_t& token : tokens) token = next++ % 5 == 0 ? 1 : next;
    options.shards.push_back(folder / ("fineweb_train_00000" + std::to_string(i) + ".bin"));
    write_shard(options.shards.back(), tokens);
  }
  options.row_tokens = 8;
  options.max_segment_tokens = 4;
  options.order = DataOrder::stream;
  options.group_spans = 4;
  return options;
}

Ints targets_of(Loader& loader) {
  Batch batch;
  loader.next(batch);
  return batch.targets;
}

TEST(StreamLoader, RowsShareOneTokenWithTheNext) {
  Loader loader(stream_of("stream_rows", {100}));
  Batch first, second;
  loader.next(first);
  loader.next(second);
  EXPECT_EQ(first.targets.back(), second.tokens.front());
  EXPECT_EQ(first.segment_count, 3) << "documents at 0 and 5, cut after 4 tokens: 0, 4, 5";
}

TEST(StreamLoader, JoinedDocumentsAreCutByLengthAlone) {
  LoaderOptions options = stream_of("stream_joined", {100});
  options.bos_id = kNoDocuments;
  Loader loader(options);
  Batch batch;
  loader.next(batch);
  EXPECT_EQ(batch.segment_count, 2);
  EXPECT_EQ(batch.cu_seqlens[1], 4);
  EXPECT_EQ(batch.longest_segment, 4);
}

TEST(StreamLoader, AnotherWorldSizeResumesAtTheSameToken) {
  LoaderOptions options = stream_of("stream_world", {100, 33, 70});
  Loader one(options);
  for (int row = 0; row < 12; ++row) targets_of(one);
  options.world_size = 2;
  options.rank = 1;
  Loader second(options);
  second.restore(one.position());
  targets_of(one);
  targets_of(one);
  EXPECT_EQ(targets_of(second), targets_of(one));
  EXPECT_EQ(targets_of(second), targets_of(one));
  EXPECT_EQ(second.position(), one.position());
}

// 100 tokens hold three batches of 32 and the token that follows; 33 exactly one, because the shard is entered; 70 two.
TEST(StreamLoader, EndsBehindTheLastShard) {
  Loader loader(stream_of("stream_end", {100, 33, 70}));
  EXPECT_EQ(loader.spans_per_epoch(), 4 * (3 + 1 + 2));
  Ints last;
  for (std::int64_t row = 0; row < loader.spans_per_epoch(); ++row) last = targets_of(loader);
  const LoaderPosition after = loader.position();
  const std::string message = sentence_of(ExitCode::bad_data, [&] { targets_of(loader); });
  EXPECT_TRUE(contains(message, "ends after 6 steps' batches of 32 tokens"));
  EXPECT_EQ(loader.position(), after);
  sentence_of(ExitCode::bad_data, [&] { targets_of(loader); });
}

// The first shard is asked before anything is read of it, as the script does.
TEST(StreamLoader, AFirstShardOfOneBatchIsSkipped) {
  Loader loader(stream_of("stream_first", {33, 66}));
  EXPECT_EQ(loader.spans_per_epoch(), 8);
  targets_of(loader);
  for (int row = 0; row < 3; ++row) targets_of(loader);
  EXPECT_EQ(loader.position().shard_visits, 1);
}

TEST(StreamLoader, ShardsShorterThanAStepAreRefused) {
  const std::string message = sentence_of(ExitCode::bad_data, [] {
    Loader loader(stream_of("stream_short", {100, 32}));
  });
  EXPECT_TRUE(contains(message, "32 tokens, fewer than the 33 of one step"));
  Loader loader(stream_of("stream_longer", {100, 33}));
  sentence_of(ExitCode::bad_data, [&] { loader.set_group_spans(5); });
  EXPECT_EQ(loader.options().group_spans, 4);
}

}  // namespace
}  // namespace mulligan::data_loader_stream_test
