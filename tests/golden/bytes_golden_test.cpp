// Byte counting against the public reference's tables, exactly. Fixture: bytes/. The tokenizer itself is not
// part of the fixture: the second route (decoding) is compared in tests/unit/data_byte_count_test.cpp.
#include <gtest/gtest.h>

#include "framework/data/byte_count.h"
#include "tests/golden/golden_fixture.h"

namespace mulligan::bytes_golden_test {
namespace {

const GoldenFixture& fixture() {
  static const GoldenFixture loaded("bytes");
  return loaded;
}

ByteTable table() {
  return {fixture().ints("base_bytes"), fixture().bytes("has_leading_space"), fixture().bytes("is_boundary")};
}

TEST(BytesGolden, TablesHaveTheStatisticsOfTheManifest) {
  const auto& stats = fixture().manifest().at("stats");
  EXPECT_EQ(table().vocabulary(), stats.at("vocab").get<int>());
  for (const int id : stats.at("boundary_ids")) {
    EXPECT_EQ(table().bytes(stats.at("space_piece_id"), id), 0) << "boundary " << id;
  }
}

TEST(BytesGolden, EveryTokenOfEverySnippetAfterBos) {
  const int bos = fixture().manifest().at("stats").at("bos");
  const auto& snippets = fixture().manifest().at("snippets");
  ASSERT_FALSE(snippets.empty());
  for (std::size_t i = 0; i < snippets.size(); ++i) {
    const std::string prefix = "snip" + std::to_string(i);
    SCOPED_TRACE(prefix);
    const auto ids = fixture().ints(prefix + ".ids");
    const auto expected = fixture().ints(prefix + ".token_bytes_after_bos");
    ASSERT_EQ(ids.size(), snippets[i].at("n_ids").get<std::size_t>());
    int previous = bos;
    std::vector<std::uint16_t> stream{static_cast<std::uint16_t>(bos)};
    for (std::size_t t = 0; t < ids.size(); ++t) {
      EXPECT_EQ(table().bytes(previous, ids[t]), expected[t]) << "token " << t;
      previous = ids[t];
      stream.push_back(static_cast<std::uint16_t>(previous));
    }
    EXPECT_EQ(table().count(stream), snippets[i].at("formula_bytes_after_bos").get<std::uint64_t>());
    // The reference decoded the same ids; its text has as many bytes.
    EXPECT_EQ(table().count(stream), snippets[i].at("decoded").get<std::string>().size());
  }
}

TEST(BytesGolden, StreamOfSeveralDocuments) {
  const auto ids = fixture().ints("stream.ids");
  const auto expected = fixture().ints("stream.token_bytes");
  ASSERT_EQ(ids.size(), expected.size() + 1);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(table().bytes(ids[i], ids[i + 1]), expected[i]) << "position " << i;
  }
  EXPECT_EQ(table().count(std::vector<std::uint16_t>(ids.begin(), ids.end())),
            fixture().manifest().at("stats").at("stream_total_bytes").get<std::uint64_t>());
}

}  // namespace
}  // namespace mulligan::bytes_golden_test
