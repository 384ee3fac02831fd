// Plugins built with the headers of ABI 1.5 go on working: a score transform and a quantiser that chooses
// over the whole model, a kind and calls that were new then.
#include <gtest/gtest.h>

#include <cmath>

#include "framework/artifact/quantize_model.h"
#include "framework/artifact/tensor_map.h"
#include "framework/check/plugin_check.h"
#include "framework/plugin/quantizer.h"
#include "framework/plugin/transform.h"
#include "tests/support/sentence.h"
#include "tests/unit/ttt_world.h"

namespace mulligan {
namespace {

std::string old_file(const std::string& name) {
  return std::string(MULLIGAN_ABI_1_5_PLUGIN_DIRECTORY) + "/mulligan_" + name + ".so";
}
PluginHandle old_plugin(PluginKind kind, const std::string& name) {
  return test_plugin_host().load(kind, name, old_file(name));
}

// What old_followers proposes, by its definition: tokens, the one to raise most first.
class NaiveFollowers {
 public:
  std::vector<int> propose(int present) const {
    const auto found = runs_.find(present);
    if (found == runs_.end()) return {};
    const std::vector<int>& run = found->second;
    return {run.rbegin(), run.rbegin() + std::min<std::ptrdiff_t>(2, std::ssize(run))};
  }
  void learn(int present, int token) {
    std::vector<int>& run = runs_[present];
    if (run.empty() || run.back() != token) run.push_back(token);
  }

 private:
  std::map<int, std::vector<int>> runs_;  // by token, what followed it; each change once
};

// Three places side by side, one of which is never begun; the key, both biases, and the transform's own
// sentence.
TEST(PluginAbi15, ATransformIsToldAndAskedThroughItsWholeInterface) {
  const PluginHandle plugin = old_plugin(PluginKind::transform, "old_followers");
  EXPECT_EQ(plugin->abi(), "1.5");
  EXPECT_NE(sentence_of([&] { test_plugin_config(plugin, "boost = 60"); }).find("boost"), std::string::npos);
  const Transform transform(plugin, test_plugin_config(plugin, "boost = 2.5"));
  EXPECT_EQ(transform.biases(), 2);
  constexpr int kTokens = 600, kVocabulary = 7, kPlaces = 3;
  const auto stream = transform.open({kVocabulary, kTokens, kPlaces});
  NaiveFollowers followers;
  std::vector<int> present(kPlaces, -1);
  std::size_t most = 0;
  std::uint32_t state = 5;
  for (int i = 0; i < kTokens; ++i) {
    const int place = i % kPlaces;
    if (place < 2 && i % 50 < kPlaces) {
      present[static_cast<std::size_t>(place)] = i % kVocabulary;
      stream->begin(place, i % kVocabulary);
    }
    int& before = present[static_cast<std::size_t>(place)];
    const auto proposal = stream->propose(place);
    const std::vector<int> expected = before < 0 ? std::vector<int>() : followers.propose(before);
    ASSERT_EQ(proposal.size(), expected.size()) << "token " << i;
    for (std::size_t j = 0; j < expected.size(); ++j) {
      EXPECT_EQ(proposal[j].token, expected[j]) << "token " << i;
      EXPECT_EQ(proposal[j].bias, j == 0 ? 2.5 : 1.25) << "token " << i;
    }
    most = std::max(most, expected.size());
    state = state * 1664525u + 1013904223u;
    const int token = static_cast<int>((state >> 16) % kVocabulary);
    stream->observe(place, token);
    if (before >= 0) followers.learn(before, token);
    before = token;
  }
  EXPECT_EQ(most, 2u);
  const std::string text = sentence_of([&] { stream->observe(0, 1); });
  EXPECT_NE(text.find("old_followers"), std::string::npos) << text;
  EXPECT_NE(text.find("more tokens came than the stream was opened for"), std::string::npos) << text;
}

struct Scored {
  TttReport report;
  std::vector<float> losses;
};
Scored scored(const std::vector<std::uint16_t>& tokens, TransformOrder order, bool transformed) {
  TttRunner::Options options = tiny_options();
  if (transformed) {
    options.transform = "old_followers";
    options.transform_file = old_file("old_followers");
    options.transform_keys = "boost = 1.75";
    options.transform_order = order;
  }
  TttRunner runner(options);
  runner.set_random_parameters(3);
  refresh_copies(runner.model().store, runner.model().layouts);
  const TttConfig config = tiny_config();
  const TttSetup setup = runner.setup(config);
  TttRun run(runner.model(), setup, {tokens, 1, nullptr, {}});
  Scored result{run.run(), {}};
  result.losses = run.book().losses();
  return result;
}

TEST(PluginAbi15, ATransformChangesTheScoresOfARunAndNothingElse) {
  std::vector<std::uint16_t> tokens = made_up_stream({9, 14, 31, 7, 22, 12, 18, 27, 5, 16});
  for (std::uint16_t& token : tokens) token = token == 1 ? 1 : static_cast<std::uint16_t>(2 + token % 3);
  const Scored plain = scored(tokens, TransformOrder::queue, false);
  for (const TransformOrder order : {TransformOrder::queue, TransformOrder::document, TransformOrder::file}) {
    const Scored tilted = scored(tokens, order, true);
    EXPECT_EQ(tilted.report.untransformed.loss_nats, plain.report.sums.loss_nats);
    EXPECT_NE(tilted.report.sums.loss_nats, plain.report.sums.loss_nats);
    if (order != TransformOrder::document) continue;
    NaiveFollowers followers;
    int alone = 0, raised = 0;
    for (std::size_t at = 1; at < tokens.size(); ++at) {
      if (tokens[at] == 1) {
        followers = {};
        continue;
      }
      const std::vector<int> proposal = followers.propose(tokens[at - 1]);
      followers.learn(tokens[at - 1], tokens[at]);
      const double change = static_cast<double>(tilted.losses[at]) - static_cast<double>(plain.losses[at]);
      if (proposal.empty()) {
        EXPECT_EQ(change, 0) << "target " << at;
        ++alone;
      } else if (proposal == std::vector<int>{tokens[at]}) {
        // The only one that is raised is the target: log(1 - p + p e^b) - b.
        const double p = std::exp(-static_cast<double>(plain.losses[at]));
        EXPECT_NEAR(change, std::log(1 - p + p * std::exp(1.75)) - 1.75, 1e-5) << "target " << at;
        ++raised;
      } else {
        EXPECT_LT(std::abs(change), 1.75) << "target " << at;
      }
    }
    EXPECT_GT(alone, 0);
    EXPECT_GT(raised, 0);
  }
}

// All weights are 1.1: with 4 bits the code 4 of steps of 1/4, with 7 bits the code 35 of steps of 1/32. What
// is lost on average in the last matrix is between 1/16 and 1/8.
TEST(PluginAbi15, AQuantizerChoosesOverTheWholeModel) {
  const PluginHandle plugin = old_plugin(PluginKind::quantizer, "old_chooser");
  EXPECT_EQ(plugin->abi(), "1.5");
  const Quantizer quantizer(plugin, test_plugin_config(plugin, "protected_size = 3"));
  EXPECT_TRUE(quantizer.chooses());
  const mlg_quantize_tensor shape{"w", 40, 24, 4, 6, nullptr, nullptr, nullptr};
  EXPECT_EQ(quantizer.extra_bytes({&shape, 1}), 40 * (3 * 3 / 8.0 + 2) + 40 + 24 + 4);
  const ModelConfig model = tiny_model();
  const std::vector<QuantizeTensorRow> rows{{"blocks.*.mlp.*.weight", TensorFormat::integer, 4, 6, {}},
                                            {"*", TensorFormat::fp32, 0, 0, {}}};
  QuantizeSources sources;
  sources.quantizer = &quantizer;
  sources.weights = [&](const std::string& parameter) {
    for (const ParameterSpec& spec : model_parameters(model))
      if (spec.name == parameter)
        return std::vector<float>(static_cast<std::size_t>(spec.type.elements()), 1.1F);
    return std::vector<float>();
  };
  const auto columns_of = [](const TapPoint& point) { return point.kind == TapKind::mlp_down ? 24u : 16u; };
  sources.hessian = [&](const TapPoint& point) {
    const std::size_t columns = columns_of(point);
    std::vector<float> identity(columns * columns);
    for (std::size_t i = 0; i < columns; ++i) identity[i * columns + i] = 1;
    return identity;
  };
  sources.input_rms = [&](const TapPoint& point) {
    std::vector<float> rms(columns_of(point), 1);
    rms[5] = 3;
    return rms;
  };
  const QuantizedModel quantized = quantize_model(model, rows, sources);
  std::vector<const QuantizedTensor*> integer;
  for (const QuantizedTensor& tensor : quantized.tensors)
    if (tensor.format == TensorFormat::integer) integer.push_back(&tensor);
  ASSERT_EQ(integer.size(), 8u);
  for (const QuantizedTensor* tensor : integer) {
    EXPECT_EQ(tensor->protected_columns.starts, std::vector<std::int64_t>{5});
    EXPECT_EQ(tensor->protected_columns.size, 3);
    EXPECT_EQ(tensor->protected_columns.bits, 7);
    const bool last = tensor == integer.back();
    EXPECT_EQ(tensor->correction.rank, last ? 1 : 0);
    const std::vector<float> weights = dequantize(*tensor);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const std::size_t column = i % static_cast<std::size_t>(tensor->columns());
      const bool fine = column >= 5 && column < 8;
      EXPECT_EQ(weights[i], (fine ? 1.09375F : 1.0F) + (last ? 0.0625F : 0.0F)) << tensor->name << " " << i;
    }
  }
}

TEST(PluginAbi15, BothPassTheirChecks) {
  for (const auto& [kind, name, line] :
       {std::tuple{PluginKind::transform, "old_followers", "no proposal knows its own or a later token"},
        std::tuple{PluginKind::quantizer, "old_chooser", "protected columns have their own bits"}}) {
    const CheckList list = check_plugin(test_plugin_host(), old_plugin(kind, name));
    bool held = false;
    for (const CheckLine& one : list.lines()) {
      EXPECT_EQ(one.problem, "") << name << ": " << one.what;
      held = held || one.what.starts_with(line);
    }
    EXPECT_TRUE(held) << name << " was not held against: " << line;
  }
}

}  // namespace
}  // namespace mulligan
