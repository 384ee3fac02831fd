// The training loader, segment boundaries, evaluation rows, document batches and chunk windows against the
// public reference's, exactly. Fixture: loader/.
#include <gtest/gtest.h>

#include <regex>

#include "framework/data/documents.h"
#include "framework/data/eval_rows.h"
#include "framework/data/loader.h"
#include "framework/data/prefetcher.h"
#include "tests/golden/golden_fixture.h"

namespace mulligan::loader_golden_test {
namespace {

using Ints = std::vector<std::int32_t>;

const GoldenFixture& fixture() {
  static const GoldenFixture loaded("loader");
  return loaded;
}

// Row i of a [rows, columns] tensor.
Ints row(const Ints& values, std::size_t columns, std::size_t i) {
  const auto begin = values.begin() + static_cast<std::ptrdiff_t>(i * columns);
  return {begin, begin + static_cast<std::ptrdiff_t>(columns)};
}
std::size_t columns_of(const std::string& name) {
  return static_cast<std::size_t>(fixture().shape(name)[1]);
}

std::string shard_folder(const std::string& case_name) {
  return (fixture().folder() / (case_name.starts_with("nobos") ? "shards_nobos" : "shards")).string();
}

LoaderOptions options_of(const std::string& case_name, const nlohmann::json& info, int rank) {
  LoaderOptions options;
  options.shards = find_shards({shard_folder(case_name)}, DataSplit::train);
  options.row_tokens = info.at("local_tokens");
  options.max_segment_tokens = info.at("max_seq_len");
  options.world_size = info.at("world_size");
  options.rank = rank;
  return options;
}

// All batches of one rank of one case: tokens, targets, padded boundaries, their number and
// the longest segment.
void expect_training_stream(const std::string& case_name, const nlohmann::json& info, int rank) {
  const std::string prefix = case_name + ".rank" + std::to_string(rank);
  SCOPED_TRACE(prefix);
  const Ints inputs = fixture().ints(prefix + ".inputs");
  const Ints targets = fixture().ints(prefix + ".targets");
  const Ints boundaries = fixture().ints(prefix + ".cu_seqlens");
  const Ints padded = fixture().ints(prefix + ".cu_len");
  const Ints real = fixture().ints(prefix + ".cu_real");
  const Ints longest = fixture().ints(prefix + ".max_seqlen");
  Prefetcher loader(std::make_unique<Loader>(options_of(case_name, info, rank)), 2);
  for (std::size_t i = 0; i < info.at("batches").get<std::size_t>(); ++i) {
    SCOPED_TRACE(i);
    const Batch& batch = loader.next();
    EXPECT_EQ(batch.tokens, row(inputs, columns_of(prefix + ".inputs"), i));
    EXPECT_EQ(batch.targets, row(targets, columns_of(prefix + ".targets"), i));
    ASSERT_EQ(batch.cu_seqlens.size(), static_cast<std::size_t>(padded[i]));
    Ints expected = row(boundaries, columns_of(prefix + ".cu_seqlens"), i);
    expected.resize(static_cast<std::size_t>(padded[i]));
    EXPECT_EQ(batch.cu_seqlens, expected);
    EXPECT_EQ(batch.segment_count + 1, real[i]);
    EXPECT_EQ(batch.longest_segment, longest[i]);
  }
}

TEST(LoaderGolden, TrainingStreamsOfEveryWorldSizeMatch) {
  int cases = 0;
  for (const auto& [name, info] : fixture().manifest().at("info").items()) {
    if (name.starts_with("eval.")) continue;
    for (int rank = 0; rank < info.at("world_size").get<int>(); ++rank)
      expect_training_stream(name, info, rank);
    ++cases;
  }
  EXPECT_GT(cases, 0);
}

TEST(LoaderGolden, SeekingToAnyBatchContinuesTheReferenceStream) {
  for (const auto& [name, info] : fixture().manifest().at("info").items()) {
    if (name.starts_with("eval.")) continue;
    SCOPED_TRACE(name);
    const int world_size = info.at("world_size");
    const std::string inputs_name = name + ".rank0.inputs";
    const Ints inputs = fixture().ints(inputs_name);
    for (std::size_t i = 0; i < info.at("batches").get<std::size_t>(); ++i) {
      Loader loader(options_of(name, info, 0));
      loader.restore(loader.position_after(static_cast<std::int64_t>(i) * world_size));
      Batch batch;
      loader.next(batch);
      EXPECT_EQ(batch.tokens, row(inputs, columns_of(inputs_name), i)) << "batch " << i;
    }
  }
}

TEST(LoaderGolden, BoundaryCasesMatch) {
  const auto& cases = fixture().manifest().at("build_cu_seqlens_cases");
  ASSERT_FALSE(cases.empty());
  for (const auto& test : cases) {
    SCOPED_TRACE(test.dump());
    ASSERT_EQ(test.at("bucket").get<std::size_t>(), kSegmentBucket);
    Batch batch;
    build_segments(test.at("bos_pos").get<Ints>(), test.at("total_len"), test.at("max_doc_len"), batch);
    EXPECT_EQ(batch.cu_seqlens, test.at("cu").get<Ints>());
    EXPECT_EQ(batch.longest_segment, test.at("max_seqlen").get<int>());
  }
}

std::vector<std::uint16_t> validation_tokens() {
  std::vector<std::uint16_t> tokens =
      read_tokens(find_shards({(fixture().folder() / "val").string()}, DataSplit::validation));
  const std::int64_t row_tokens = fixture().manifest().at("eval_seq_len");
  tokens.resize(
      static_cast<std::size_t>(whole_rows_length(static_cast<std::int64_t>(tokens.size()), row_tokens)));
  return tokens;
}

TEST(LoaderGolden, EvaluationRowsWithTheReferencesTruncationMatch) {
  const std::vector<std::uint16_t> tokens = validation_tokens();
  const Ints expected_tokens = fixture().ints("eval.val_tokens");
  ASSERT_EQ(Ints(tokens.begin(), tokens.end()), expected_tokens);
  const std::regex pattern("eval\\.ws(\\d+)\\.rank(\\d+)");
  int cases = 0;
  for (const auto& [name, info] : fixture().manifest().at("info").items()) {
    std::smatch match;
    if (!std::regex_match(name, match, pattern)) continue;
    SCOPED_TRACE(name);
    EvalConfig eval;
    eval.sequence_length = fixture().manifest().at("eval_seq_len");
    eval.packed_sequences = info.at("local_batch_seqs");
    eval.drop_remainder = true;
    const auto rows = eval_rows(std::ssize(tokens), eval, std::stoi(match[1]), std::stoi(match[2]));
    ASSERT_EQ(rows.size(), info.at("batches").get<std::size_t>());
    const Ints inputs = fixture().ints(name + ".inputs");
    const Ints boundaries = fixture().ints(name + ".cu_seqlens");
    const Ints longest = fixture().ints(name + ".max_seqlen");
    for (std::size_t i = 0; i < rows.size(); ++i) {
      Batch batch;
      fill_eval_row(tokens, rows[i], eval.sequence_length * eval.packed_sequences, 1, eval.sequence_length,
                    batch);
      EXPECT_EQ(batch.tokens, row(inputs, columns_of(name + ".inputs"), i));
      EXPECT_EQ(batch.cu_seqlens, row(boundaries, columns_of(name + ".cu_seqlens"), i));
      EXPECT_EQ(batch.longest_segment, longest[i]);
    }
    ++cases;
  }
  EXPECT_GT(cases, 0);
}

TEST(LoaderGolden, DocumentsMatch) {
  const Ints expected = fixture().ints("docs.start_len");
  const std::vector<Document> documents = find_documents(validation_tokens());
  ASSERT_EQ(documents.size(), fixture().manifest().at("n_docs").get<std::size_t>());
  for (std::size_t i = 0; i < documents.size(); ++i) {
    EXPECT_EQ(documents[i], (Document{expected[2 * i], expected[2 * i + 1]})) << "document " << i;
  }
}

TEST(LoaderGolden, TestTimeTrainingBatchesMatch) {
  const std::vector<Document> documents = find_documents(validation_tokens());
  const std::regex pattern("batch(\\d+)\\.(ascending|descending)");
  const auto& cases = fixture().manifest().at("ttt_batches");
  ASSERT_FALSE(cases.empty());
  for (const auto& [name, expected] : cases.items()) {
    SCOPED_TRACE(name);
    std::smatch match;
    ASSERT_TRUE(std::regex_match(name, match, pattern));
    const DocumentOrder order =
        match[2] == "ascending" ? DocumentOrder::shortest_first : DocumentOrder::longest_first;
    const auto batches = batch_documents(documents, std::stoi(match[1]), order);
    ASSERT_EQ(batches.size(), expected.size());
    for (std::size_t i = 0; i < batches.size(); ++i) {
      EXPECT_EQ(batches[i].index, expected[i].at("batch_index").get<int>());
      EXPECT_EQ(batches[i].documents, expected[i].at("docs").get<std::vector<int>>());
    }
  }
}

TEST(LoaderGolden, SampledValidationDocumentsMatchPythonsRandom) {
  const std::regex pattern("frac([0-9.]+)_seed(\\d+)");
  int cases = 0;
  for (const auto& [name, expected] : fixture().manifest().at("val_doc_fraction_selection").items()) {
    std::smatch match;
    if (!std::regex_match(name, match, pattern)) continue;
    EXPECT_EQ(sample_documents(fixture().manifest().at("n_docs"), std::stod(match[1]), std::stoull(match[2])),
              expected.get<std::vector<int>>())
        << name;
    ++cases;
  }
  EXPECT_GT(cases, 0);
}

TEST(LoaderGolden, ChunkWindowsMatch) {
  const Ints rows = fixture().ints("chunk_windows");
  const std::size_t columns = columns_of("chunk_windows");
  ASSERT_EQ(columns, 9u);
  for (std::size_t i = 0; i * columns < rows.size(); ++i) {
    const Ints r = row(rows, columns, i);
    EXPECT_EQ(chunk_count(r[0], r[1]), r[3]);
    EXPECT_EQ(chunk_window(r[0], r[1], r[2], r[4]), (ChunkWindow{r[5], r[6], r[7], r[8]})) << "row " << i;
  }
}

}  // namespace
}  // namespace mulligan::loader_golden_test
