// Rows of several texts in a fixed ratio. The ratio is exact at every moment and the same for any number of ranks, and a run
// can resume it.
#include <gtest/gtest.h>

#include <cmath>

#include "framework/data/loader.h"
#include "framework/data/prefetcher.h"
#include "tests/unit/data_support.h"

namespace mulligan::data_loader_mix_test {
namespace {

namespace fs = std::filesystem;
using Row = std::vector<std::int32_t>;

// Shards for part k: a BOS, then the tokens 1000 k + 2 and up.
fs::path part_shard(const fs::path& folder, int part, std::size_t tokens) {
  std::vector<std::uint16_t> values(tokens, 1);
  for (std::size_t i = 1; i < tokens; ++i) values[i] = static_cast<std::uint16_t>(1000 * part + 2 + i % 900);
  const fs::path path = folder / ("part_" + std::to_string(part) + ".bin");
  write_shard(path, values);
  return path;
}

LoaderOptions three_parts(const std::string& name, std::int64_t group = 1) {
  const fs::path folder = fresh_folder(name);
  LoaderOptions options;
  options.row_tokens = 16;
  options.group_spans = group;
  const std::vector<double> weights = {0.75, 0.25, 0.5};
  for (int part = 0; part < 3; ++part) {
    options.shards.push_back(part_shard(folder, part, part == 1 ? 200 : 2000));
    options.parts.push_back(
        {std::string(1, static_cast<char>('a' + part)), 1, weights[static_cast<std::size_t>(part)]});
  }
  return options;
}

Row next_row(Loader& loader) {
  Batch batch;
  loader.next(batch);
  return batch.tokens;
}
int part_of(const Row& row) {
  return row.back() / 1000;
}

TEST(LoaderMix, TheRatioHoldsAtEveryMoment) {
  Loader loader(three_parts("mix_ratio"));
  std::vector<double> read(3, 0);
  const std::vector<double> share = {0.5, 1.0 / 6, 1.0 / 3};
  for (int n = 1; n <= 600; ++n) {
    ++read[static_cast<std::size_t>(part_of(next_row(loader)))];
    for (std::size_t part = 0; part < 3; ++part) EXPECT_LE(std::abs(read[part] - share[part] * n), 1.0) << n;
  }
  EXPECT_EQ(read, (std::vector<double>{300, 100, 200}));
  const LoaderPosition position = loader.position();
  EXPECT_EQ(position.consumed_spans, 600);
  EXPECT_EQ(position.parts[1].spans, 100);
  EXPECT_GT(position.parts[1].shard_visits, 0) << "the small part has been read several times";
}

TEST(LoaderMix, RanksDivideTheSameGroups) {
  Loader alone(three_parts("mix_ranks", 4));
  std::vector<Row> rows;
  for (int i = 0; i < 80; ++i) rows.push_back(next_row(alone));
  for (int rank = 0; rank < 2; ++rank) {
    LoaderOptions options = alone.options();
    options.world_size = 2;
    options.rank = rank;
    Loader half(options);
    for (std::size_t group = 0; group < 20; ++group) {
      for (std::size_t row = 0; row < 2; ++row)
        ASSERT_EQ(next_row(half), rows[4 * group + 2 * static_cast<std::size_t>(rank) + row]);
    }
  }
}

TEST(LoaderMix, ASavedPositionContinuesTheStream) {
  Loader whole(three_parts("mix_resume", 2));
  std::vector<Row> rows;
  std::vector<LoaderPosition> positions;
  for (int i = 0; i < 120; ++i) {
    if (i % 2 == 0) positions.push_back(whole.position());
    rows.push_back(next_row(whole));
  }
  for (std::size_t start = 0; start < positions.size(); start += 7) {
    Loader resumed(whole.options());
    resumed.restore(positions[start]);
    for (std::size_t i = 2 * start; i < rows.size(); ++i) ASSERT_EQ(next_row(resumed), rows[i]) << start;
  }
  Prefetcher ahead(std::make_unique<Loader>(whole.options()), 3);
  for (const Row& row : rows) ASSERT_EQ(ahead.next().tokens, row);
  EXPECT_EQ(ahead.position(), whole.position());
}

TEST(LoaderMix, NewWeightsCountFromWhereTheyBegin) {
  Loader before(three_parts("mix_weights"));
  for (int i = 0; i < 60; ++i) next_row(before);
  LoaderOptions options = before.options();
  options.parts[0].weight = 0;
  options.parts[1].weight = options.parts[2].weight = 1;
  Loader after(options);
  LoaderPosition position = before.position();
  for (PartPosition& part : position.parts) part.counted = 0;
  after.restore(position);
  std::vector<int> read(3, 0);
  for (int i = 0; i < 40; ++i) ++read[static_cast<std::size_t>(part_of(next_row(after)))];
  EXPECT_EQ(read, (std::vector<int>{0, 20, 20})) << "the ratio does not make up for earlier reads";
  EXPECT_EQ(after.position().parts[0].spans, 30);
}

TEST(LoaderMix, OnePartIsTheStreamWithoutParts) {
  LoaderOptions options = three_parts("mix_one", 2);
  options.shards.resize(1);
  options.parts.resize(1);
  LoaderOptions plain = options;
  plain.parts.clear();
  Loader one(options), none(plain);
  for (int i = 0; i < 300; ++i) ASSERT_EQ(next_row(one), next_row(none)) << i;
}

TEST(LoaderMix, WhatDoesNotFitIsRefused) {
  LoaderOptions options = three_parts("mix_refused");
  options.parts[2].shards = 2;
  sentence_of(ExitCode::bad_configuration, [&] { Loader loader(options); });
  options.parts[2].shards = 1;
  for (LoaderPart& part : options.parts) part.weight = 0;
  sentence_of(ExitCode::bad_configuration, [&] { Loader loader(options); });
  for (LoaderPart& part : options.parts) part.weight = 1;
  options.group_spans = 20;  // 340 tokens, more than part b has
  EXPECT_TRUE(contains(sentence_of(ExitCode::bad_data, [&] { Loader loader(options); }), "of 'b'"));
  options.parts[1].weight = 0;
  Loader loader(options);  // a part that is not read may be empty
  LoaderPosition position = loader.position();
  position.parts.pop_back();
  sentence_of(ExitCode::bad_data, [&] { loader.restore(position); });
  position = loader.position();
  position.parts[0].visit_spans = 5;  // more than was read
  sentence_of(ExitCode::bad_data, [&] { loader.restore(position); });
  position.parts[0].spans = position.consumed_spans = 100000;
  position.parts[0].visit_spans = 1000;  // beyond the shard
  sentence_of(ExitCode::bad_data, [&] { loader.restore(position); });
}

}  // namespace
}  // namespace mulligan::data_loader_mix_test
