// A rule's choices (plan()) do what they say, also after an interruption, and impossible ones are refused.
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <cmath>
#include <numeric>

#include "framework/core/philox.h"
#include "tests/support/built.h"
#include "tests/support/sentence.h"
#include "tests/unit/ttt_world.h"

namespace mulligan::ttt_rule_test {
namespace {

const std::vector<int> kLengths = {9, 14, 31, 7, 22, 12, 18, 27, 5};

TttRunner::Options planning(const std::string& keys) {
  TttRunner::Options options = tiny_options(keys);
  options.adapter_plugin = "planning";
  options.adapter_file = (test_support::built("ttt_plugins") / "mulligan_planning.so").string();
  options.optimizer_keys = "beta1 = 0.0\nbeta2 = 0.999\neps = 1e-10";  // no gradient, no step
  options.base = "none";
  return options;
}

TttRunner::Options doc_lora(const std::string& keys) {
  return tiny_options("rank = 3\nalpha = 6.0\n" + keys);
}

TinyOutcome run(const TttRunner::Options& options, const TttStanding* from = nullptr,
                std::int64_t lanes = 1) {
  return run_tiny({.options = options, .tokens = made_up_stream(kLengths), .lanes = lanes, .from = from});
}
std::vector<float> losses(const std::string& keys) {
  return run(planning(keys)).losses;
}

TEST(TttRule, StepsAndTheirRate) {
  const std::vector<float> one = losses("");
  EXPECT_EQ(one, losses("steps = 1\nlr_factor = 1.0"));
  EXPECT_NE(one, losses("steps = 3"));
  EXPECT_NE(one, losses("lr_factor = 0.5"));
  const std::vector<float> none = losses("steps = 0");
  EXPECT_NE(one, none);
  EXPECT_EQ(none, losses("lr_factor = 0.0"));
}

TEST(TttRule, WeightsAreOfDocuments) {
  const std::vector<std::uint16_t> tokens = made_up_stream(kLengths);
  TttConfig config = tiny_config();
  const DocumentPlan plan = plan_documents(tokens, 1, config);
  const std::vector<float> one = losses(""), none = losses("steps = 0"),
                           without_first = losses("first_weight = 0.0");
  // Adapters are those of a document, so each learns from itself alone.
  for (const PlannedBatch& batch : plan.queue) {
    for (std::size_t i = 0; i < batch.documents.size(); ++i) {
      const TargetRange range = plan.range(batch.documents[i]);
      for (auto at = static_cast<std::size_t>(range.first); at < static_cast<std::size_t>(range.last); ++at)
        EXPECT_EQ(without_first[at], i == 0 ? none[at] : one[at]) << "target " << at;
    }
  }
}

TEST(TttRule, AdaptersAreKeptRedrawnOrShrunk) {
  const std::vector<float> fresh = losses("keep = 0.0"), kept = losses("keep = 1.0"),
                           half = losses("keep = 0.5");
  EXPECT_NE(fresh, kept);
  EXPECT_NE(kept, half);
  EXPECT_NE(kept, losses("keep = 1.0\nkeep_state = true"));

  TinyScorer<> tiny(TinyRun{.options = planning(""), .tokens = made_up_stream(kLengths)});
  TensorStore& store = tiny.runner.store();
  AdapterSet& set = tiny.scorer->adapters(tiny.how.config.batch_documents);
  set.create(0);
  const AdapterTensor& tensor = *set.tensors().front();
  const std::vector<float> start = store.download_as<float>(tensor.master);
  std::vector<float> moved = start;
  for (float& value : moved) value += 1;
  store.upload(tensor.master, moved);
  set.reset(1, {std::vector<double>(set.tensors().size(), 0.25), false});
  const std::vector<float> shrunk = store.download_as<float>(tensor.master);
  for (std::size_t i = 0; i < start.size(); ++i) EXPECT_NEAR(shrunk[i], start[i] + 0.25F, 1e-6F);
}

TEST(TttRule, SeesBookedLosses) {
  const std::vector<float> one = losses(""), by_loss = losses("by_loss = true");
  EXPECT_NE(one, by_loss);
  EXPECT_NE(losses("steps = 2"), by_loss);
}

// Also with training of the base model, and with score transforms.
TEST(TttRule, AnInterruptedRunGoesOnToTheBit) {
  std::vector<TttRunner::Options> rules = {planning(""), planning("keep = 0.5\nby_loss = true"),
                                           planning("keep = 1.0\nkeep_state = true\nsteps = 2"),
                                           doc_lora("lr_decay = 0.7\npatience = 1\nsteps = 2")};
  for (const TransformOrder order : {TransformOrder::queue, TransformOrder::document, TransformOrder::file}) {
    TttRunner::Options& tilted = rules.emplace_back(doc_lora(""));
    tilted.transform = "ngram_tilt";
    tilted.transform_keys = "order = 2\nthreshold = 0.3\nboost = 1.5";
    tilted.transform_order = order;
  }
  for (const std::int64_t lanes : {1, 2}) {
    for (const TttRunner::Options& rule : rules) {
      const TinyOutcome whole = run(rule, nullptr, lanes);
      ASSERT_EQ(whole.standings.size(), 2u);
      for (const TttStanding& standing : whole.standings) {
        const TinyOutcome continued = run(rule, &standing, lanes);
        EXPECT_EQ(continued.losses, whole.losses) << rule.adapters << " lanes " << lanes;
        EXPECT_EQ(continued.report.untransformed.loss_nats, whole.report.untransformed.loss_nats);
      }
    }
  }
}

TEST(TttRule, AnotherAnswerOnResumeIsRefused) {
  const TinyOutcome whole = run(planning("steps = 1"));
  EXPECT_TRUE(refuses([&] { run(planning("steps = 2"), &whole.standings[0]); }, ExitCode::bad_data,
                      "now chooses otherwise"));
}

// The rule of doc_lora as its keys' help reads.
bool stalls(const std::vector<double>& losses, std::int64_t patience) {
  bool all = patience > 0 && static_cast<std::int64_t>(losses.size()) > patience;
  for (std::int64_t back = 1; all && back <= patience; ++back) {
    const auto chunk = losses.end() - back;
    const double earlier = std::accumulate(losses.begin(), chunk, 0.0);
    all = *chunk >= earlier / static_cast<double>(chunk - losses.begin());
  }
  return all;
}

TEST(TttRule, DocLoraChoosesAsItsKeysSay) {
  const PhiloxStream random(5, "losses");
  std::uint64_t drawn = 0;
  int stalled = 0, stopped = 0;
  for (const std::int64_t patience : {0, 1, 2, 3}) {
    const TttRunner runner(doc_lora(fmt::format("steps = 3\nlr_decay = 0.75\npatience = {}", patience)));
    for (std::int64_t chunk = 0; chunk < 8; ++chunk) {
      std::vector<std::vector<double>> losses(3);
      std::vector<mlg_ttt_document> documents;
      for (std::size_t i = 0; i < losses.size(); ++i) {
        const std::int64_t chunks = std::max<std::int64_t>(1, i == 0 ? chunk / 2 : chunk + 1);
        for (std::int64_t k = 0; k < chunks; ++k) losses[i].push_back(2 + random.uniform(drawn++));
        documents.push_back({losses[i].data(), chunks, i > 0});
      }
      double weights[3] = {1, 1, 1};
      mlg_ttt_step step{1, 1.0, weights, nullptr, 0};
      runner.adapters().plan({0, chunk, 9, 3 * chunk, 3, documents.data(), nullptr, 0}, step);
      std::int64_t learning = 0;
      for (std::size_t i = 0; i < losses.size(); ++i) {
        EXPECT_EQ(weights[i], stalls(losses[i], patience) ? 0 : 1)
            << "patience " << patience << " chunk " << chunk;
        stalled += weights[i] == 0 ? 1 : 0;
        learning += i > 0 && weights[i] > 0 ? 1 : 0;
      }
      EXPECT_EQ(step.gradient_steps, learning > 0 ? 3 : 0);
      stopped += learning == 0 ? 1 : 0;
      EXPECT_NEAR(step.lr_factor, std::pow(0.75, static_cast<double>(chunk)), 1e-12);
    }
  }
  EXPECT_GT(stalled, 5);
  EXPECT_GT(stopped, 0);
}

TEST(TttRule, DocLoraIsTheRecordsRuleByDefault) {
  const std::vector<float> plain = run(doc_lora("")).losses;
  EXPECT_EQ(plain, run(doc_lora("steps = 1\nlr_decay = 1.0\npatience = 0")).losses);
  EXPECT_EQ(plain, run(doc_lora("patience = 1000")).losses);
  EXPECT_NE(plain, run(doc_lora("lr_decay = 0.7")).losses);
  EXPECT_NE(plain, run(doc_lora("patience = 1")).losses);
  for (const char* keys :
       {"lr_decay = 1.01", "lr_decay = -0.1", "lr_decay = nan", "patience = -1", "steps = 0"}) {
    const std::string key = std::string(keys).substr(0, std::string(keys).find(' '));
    EXPECT_TRUE(refuses([&] { TttRunner refused(doc_lora(keys)); }, ExitCode::bad_configuration, key));
  }
}

TEST(TttRule, ImpossibleAnswersAreRefused) {
  const auto refusal = [](const std::string& keys) {
    return refusal_of(ExitCode::bad_configuration, [&] { run(planning(keys)); });
  };
  EXPECT_TRUE(contains(refusal("steps = -1"), "gradient_steps = -1"));
  EXPECT_TRUE(contains(refusal("lr_factor = -0.5"), "lr_factor = -0.5"));
  EXPECT_TRUE(contains(refusal("first_weight = -1.0"), "a weight = -1"));
  EXPECT_TRUE(contains(refusal("keep = 1.5"), "keep = 1.5"));
}

}  // namespace
}  // namespace mulligan::ttt_rule_test
