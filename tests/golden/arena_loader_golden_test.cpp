// The training stream and the validation of the optimiser benchmark against the published script's (fixture folder
// arena-loader, weights of arena-model): batches of 1, 2 and 4 ranks, where each begins, its end; rows and losses of
// a score.
#include <gtest/gtest.h>

#include <regex>

#include "framework/core/error.h"
#include "framework/data/prefetcher.h"
#include "framework/eval/evaluate.h"
#include "framework/eval/evaluator.h"
#include "framework/ranks/host_group.h"
#include "tests/golden/differences.h"
#include "tests/golden/golden_fixture.h"
#include "tests/golden/golden_model.h"
#include "tests/golden/value_runner.h"

namespace mulligan::arena_loader_golden_test {
namespace {

using Tokens = std::vector<std::int32_t>;

class ArenaLoaderGolden : public testing::Test {
 protected:
  ArenaLoaderGolden()
      : data_("arena-loader"),
        config_(data_.manifest().at("config")),
        sequence_(config_.at("seq")),
        batch_(config_.at("batch_tokens")),
        batches_(config_.at("batches")) {}

  std::string shards(const char* split) const {
    return (data_.folder() / "data" / "fineweb10B" / ("fineweb_" + std::string(split) + "_*.bin")).string();
  }
  // Micro-batches of `rows` sequences.
  LoaderOptions options(int world_size, int rank, std::int64_t rows) const {
    LoaderOptions options;
    options.shards = find_shards({shards("train")}, DataSplit::train);
    options.row_tokens = rows * sequence_;
    options.max_segment_tokens = sequence_;
    options.world_size = world_size;
    options.rank = rank;
    options.bos_id = kNoDocuments;
    options.order = DataOrder::stream;
    options.group_spans = batch_ / options.row_tokens;
    return options;
  }
  DataConfig validation() const {
    DataConfig data;
    data.validation = shards("val");
    data.documents = DataDocuments::joined;
    return data;
  }

  GoldenFixture data_;
  nlohmann::json config_;
  std::int64_t sequence_, batch_, batches_;
};

TEST_F(ArenaLoaderGolden, EveryRankReadsTheScriptsBatches) {
  static const std::regex pattern("train\\.ws(\\d+)\\.rank(\\d+)\\.inputs");
  int cases = 0;
  for (const std::string& name : data_.names()) {
    std::smatch match;
    if (!std::regex_match(name, match, pattern)) continue;
    const int world_size = std::stoi(match[1]), rank = std::stoi(match[2]);
    const Tokens inputs = data_.ints(name), targets = data_.ints(name.substr(0, name.size() - 6) + "targets");
    for (const std::int64_t rows : {std::int64_t{1}, data_.shape(name)[1]}) {
      SCOPED_TRACE(fmt::format("{} in micro-batches of {} rows", name, rows));
      Prefetcher loader(std::make_unique<Loader>(options(world_size, rank, rows)), 3);
      Tokens read_inputs, read_targets;
      while (read_inputs.size() < inputs.size()) {
        const Batch& batch = loader.next();
        read_inputs.insert(read_inputs.end(), batch.tokens.begin(), batch.tokens.end());
        read_targets.insert(read_targets.end(), batch.targets.begin(), batch.targets.end());
        ASSERT_EQ(batch.segment_count, rows);
        for (std::int64_t row = 0; row <= rows; ++row)
          ASSERT_EQ(batch.cu_seqlens[static_cast<std::size_t>(row)], row * sequence_);
      }
      EXPECT_EQ(read_inputs, inputs);
      EXPECT_EQ(read_targets, targets);
      try {
        loader.next();
        ADD_FAILURE() << "the stream went on past its end";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::bad_data);
      }
    }
    ++cases;
  }
  EXPECT_GT(cases, 0);
}

TEST_F(ArenaLoaderGolden, BatchesBeginWhereTheScriptsDo) {
  const Tokens shards = data_.ints("train.shard"), positions = data_.ints("train.position");
  Loader loader(options(1, 0, batch_ / sequence_));
  EXPECT_EQ(loader.spans_per_epoch(), batches_);
  Batch batch;
  for (std::int64_t i = 0; i < batches_; ++i) {
    loader.next(batch);
    const LoaderPosition after = loader.position();
    EXPECT_EQ(after.shard_visits, shards[static_cast<std::size_t>(i)]) << i;
    EXPECT_EQ((after.visit_spans - 1) * batch_, positions[static_cast<std::size_t>(i)]) << i;
    EXPECT_EQ(loader.position_after(i + 1), after);
    // What a checkpoint keeps leads to the same batch.
    Loader other(options(1, 0, batch_ / sequence_));
    other.restore(other.position_after(i));
    Batch again;
    other.next(again);
    EXPECT_EQ(again.tokens, batch.tokens);
  }
  EXPECT_THROW(static_cast<void>(loader.position_after(batches_ + 1)), Error);
}

TEST_F(ArenaLoaderGolden, ValidationRowsAreTheScripts) {
  const ValidationSet set = load_validation(validation(), kMaxVocabulary, config_.at("val_tokens"));
  const std::int64_t length = config_.at("val_seq");
  static const std::regex pattern("val\\.ws(\\d+)\\.rank(\\d+)\\.inputs");
  int cases = 0;
  for (const std::string& name : data_.names()) {
    std::smatch match;
    if (!std::regex_match(name, match, pattern)) continue;
    SCOPED_TRACE(name);
    EvalConfig cut;
    cut.sequence_length = length;
    cut.packed_sequences = config_.at("val_micro_batch_rows");
    Tokens inputs, targets;
    Batch batch;
    for (const EvalSpan& span :
         eval_rows(std::ssize(set.tokens), cut, std::stoi(match[1]), std::stoi(match[2]))) {
      fill_eval_row(set.tokens, span, length * cut.packed_sequences, set.segment_start(), length, batch);
      ASSERT_EQ(batch.segment_count, cut.packed_sequences);
      inputs.insert(inputs.end(), batch.tokens.begin(), batch.tokens.end());
      targets.insert(targets.end(), batch.targets.begin(), batch.targets.end());
    }
    EXPECT_EQ(inputs, data_.ints(name));
    EXPECT_EQ(targets, data_.ints(name.substr(0, name.size() - 6) + "targets"));
    ++cases;
  }
  EXPECT_GT(cases, 0);
}

TEST_F(ArenaLoaderGolden, ScoresOfTheModel) {
  const GoldenFixture parameters("arena-model", "params.safetensors");
  const nlohmann::json sizes = GoldenFixture("arena-model").manifest().at("config");
  const ModelConfig model = golden_arena_model(sizes, sizes);
  const std::vector<ParameterLayout> layouts = parameter_layouts(model, MLG_F32);
  ValidationSet set = load_validation(validation(), model.vocabulary, config_.at("val_tokens"));
  EvaluatorOptions how;
  how.eval.sequence_length = config_.at("val_seq");
  how.eval.packed_sequences = config_.at("val_micro_batch_rows");
  how.bos_id = set.segment_start();
  for (const GoldenKernels kernels : {GoldenKernels::plain, GoldenKernels::cuda}) {
    SCOPED_TRACE(name_of(kernels));
    const auto backend = make_golden_backend(kernels);
    TensorStore store(*backend);
    Evaluator evaluator(store, model, layouts, how);
    SharedArena arena(*backend);
    arena.bind({&evaluator.program()}, store);
    for (const ParameterLayout& layout : layouts)
      store.upload(master_name(layout.spec.name), parameters.floats(layout.spec.name));
    std::vector<float> losses;
    evaluator.score(set.tokens, nullptr, 1, 0,
                    [&](const EvalSpan&, std::span<const float> row, std::span<const float>) {
                      losses.insert(losses.end(), row.begin(), row.end());
                    });
    EXPECT_LE(largest_difference(losses, data_.doubles("val.token_loss")), 1e-4);
    const auto group = make_single_group();
    const EvalResult result = evaluate(evaluator, set, *group);
    EXPECT_EQ(static_cast<std::int64_t>(result.tokens), config_.at("val_tokens").get<std::int64_t>());
    EXPECT_EQ(result.bytes, 0U);
    EXPECT_NEAR(result.val_loss_nats, data_.doubles("val.loss").at(0), 1e-5);
  }
}

}  // namespace
}  // namespace mulligan::arena_loader_golden_test
