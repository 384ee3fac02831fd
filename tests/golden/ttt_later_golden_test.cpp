// Test-time training of two later records against their public scripts (fixtures ttt-2014 and ttt-2135, weights of model-2014). They
// use chunks by document length, adapters on some of the linear layers, side-table bytes, the smear gate with and without its mask,
// and the token n-gram tilt with our transform's hints.
#include <map>

#include "framework/data/side_table.h"
#include "tests/golden/golden_model.h"
#include "tests/golden/ttt_fixture.h"

namespace mulligan::ttt_later_golden_test {
namespace {

class TttLaterGolden : public testing::TestWithParam<const char*>, protected TttFixture {
 protected:
  TttLaterGolden()
      : TttFixture(GetParam(), "model-2014"),
        model_(golden_later_model(GoldenFixture("model-2014").manifest().at("config"))),
        bytes_(side_bytes()) {}

  std::vector<std::uint16_t> side_bytes() const {
    std::vector<std::uint16_t> bytes;
    for (const std::int32_t count : data_.ints("val_bytes"))
      bytes.push_back(static_cast<std::uint16_t>(count));
    return bytes;
  }

  // A tilt is on where the fixture has hints, unless the setting turns it off.
  bool tilts(const json& settings) const { return data_.has("hint_ids") && settings.value("tilt", true); }

  // Which adapters a run has; a switch that no run of the fixture names is what its results hold.
  bool adapts(const std::string& run, const json& settings, const std::string& place) const {
    const std::string key = "ttt_" + place + "_lora";
    if (settings.contains(key)) return settings.at(key);
    for (const auto& [other, result] : results_.items()) {
      if (data_.has("cfg." + other + ".final.lm_head.A"))
        return data_.has("cfg." + other + ".final." + place + ".A");
    }
    ADD_FAILURE() << "the fixture does not say whether " << run << " adapts " << place;
    return false;
  }

  TttRunner::Options options(const std::string& run, const json& settings) const {
    TttRunner::Options options;
    options.model = model_;
    const bool masked = settings.value("bos_mask", config_.at("smear_bos_mask").get<bool>());
    options.model.elements["smear_gate.document_start"] = ConfigValue(std::int64_t{masked ? 1 : -1});
    options.layer_order =
        config_.at("looping_active").get<bool>() ? LayerOrderKind::looped : LayerOrderKind::plain;
    const auto wants = [&](const char* place) { return adapts(run, settings, place); };
    options.adapters = fmt::format(
        "rank = {}\nalpha = {}\nwarm_start_a = {}\nq = {}\nk = {}\nv = {}\nattention_output = {}\nmlp = {}",
        config_.at("rank").get<int>(), config_.at("alpha").get<double>(),
        config_.at("warm_start_a").get<bool>(), wants("q"), wants("k"), wants("v"), wants("o"), wants("mlp"));
    options.lr = config_.at("lr").get<double>() * settings.value("ttt_local_lr_mult", 1.0);
    options.optimizer_keys = fmt::format(
        "beta1 = {}\nbeta2 = {}\neps = {}\nweight_decay = {}", config_.at("betas").at(0).get<double>(),
        settings.value("ttt_beta2", config_.at("betas").at(1).get<double>()), config_.at("eps").get<double>(),
        settings.at("ttt_weight_decay").get<double>());
    options.base = base_keys(json::object());
    options.row_tokens = config_.at("eval_seq_len");
    options.draws = std::make_shared<FixtureDraws>(data_);
    if (tilts(settings)) {
      options.transform = "ngram_tilt";
      options.transform_order = TransformOrder::file;
      options.transform_keys =
          fmt::format("order = {}\nthreshold = {}\nboost = {}", config_.at("token_order").get<int>(),
                      config_.at("token_threshold").get<double>(), config_.at("token_boost").get<double>());
    }
    return options;
  }

  TttConfig ttt_config(const json& settings) const {
    TttConfig config;
    config.batch_documents = config_.at("ttt_batch");
    config.chunk_tokens = config_.at("chunk_size");
    config.context_tokens = config_.at("ttt_eval_seq_len");
    config.prefix_documents =
        settings.value("phased_ttt_prefix_docs", config_.at("prefix_docs").get<std::int64_t>());
    config.phases = config_.at("num_phases");
    config.on_collapse = OnCollapse::off;
    if (!settings.value("ttt_short_score_first_enabled", false)) return config;
    // The script compares a document's length with the next document's BOS, the key without it.
    const auto step = [&](double length, double chunk) {
      config.chunk_limits.push_back(length - 1);
      config.chunk_sizes.push_back(chunk);
    };
    std::istringstream steps(settings.value("ttt_short_score_first_steps", std::string()));
    for (std::string one; std::getline(steps, one, ',');) {
      const std::size_t colon = one.find(':');
      step(std::stod(one.substr(0, colon)), std::stod(one.substr(colon + 1)));
    }
    if (config.chunk_limits.empty())
      step(settings.at("ttt_short_doc_len").get<double>(), settings.at("ttt_short_chunk_size").get<double>());
    return config;
  }

  void compare_chunks(const json& expected, const TttScorer& run) const {
    std::size_t document = 0;
    for (const PlannedBatch& batch : run.documents().queue) {
      for (const int number : batch.documents) {
        ASSERT_LT(document, expected.size());
        std::vector<std::int64_t> lengths;
        for (std::int64_t rest = run.documents().targets(number); rest > 0; rest -= batch.chunk_tokens)
          lengths.push_back(std::min(rest, batch.chunk_tokens));
        EXPECT_EQ(lengths, expected[document++].get<std::vector<std::int64_t>>()) << "document " << number;
      }
    }
    EXPECT_EQ(document, expected.size());
  }

  ModelConfig model_;
  SideTable bytes_;
};

TEST_P(TttLaterGolden, EveryRun) {
  int runs = 0, finals = 0, deltas = 0;
  for (const auto& [name, result] : results_.items()) {
    if (!result.is_object() || !result.contains("settings")) continue;
    SCOPED_TRACE(name);
    const json& settings = result.at("settings");
    for (const auto& [key, value] : settings.items()) {
      static const std::string known =
          " ttt_q_lora ttt_k_lora ttt_v_lora ttt_o_lora ttt_mlp_lora ttt_short_score_first_enabled ttt_short_doc_len "
          "ttt_weight_decay ttt_short_score_first_steps ttt_beta2 ttt_local_lr_mult ttt_short_chunk_size "
          "phased_ttt_prefix_docs tilt bos_mask ";
      EXPECT_NE(known.find(" " + key + " "), known.npos) << "this test does not know the setting " << key;
    }
    const std::string prefix = "cfg." + name;
    const auto host = runner(options(name, settings));
    const TttConfig config = ttt_config(settings);
    const TttSetup setup = host->setup(config);
    Recording recording(*host);
    TttScorer run(host->model(), setup, {tokens_, 1, &bytes_, {}}, &recording);
    const TttReport report = run.run();

    compare_chunks(result.at("chunk_lengths"), run);
    compare_losses(prefix, run);
    compare_sums(prefix, report);
    compare_trace(prefix, recording.trace);
    EXPECT_EQ(report.untransformed.tokens, tilts(settings) ? report.sums.tokens : 0);
    if (data_.has(prefix + ".final.lm_head.A")) {
      compare_adapters(prefix, run.adapters(config.batch_documents), host->store());
      ++finals;
      // The run with the adapters is the one of the phases.
      EXPECT_EQ(report.phases.size(), config_.at("num_phases").get<std::size_t>());
      for (std::size_t i = 0; i < report.phases.size(); ++i) {
        compare_phase(report.phases[i]);
        deltas += compare_deltas(fmt::format("phase{}", i + 1), recording.parameters.at(i));
      }
    }
    ++runs;
  }
  EXPECT_GT(runs, 0);
  EXPECT_GT(finals, 0);
  EXPECT_GT(deltas, 0);
}

// Hints of the whole stream in file order, as the fixture gives them.
TEST_P(TttLaterGolden, Hints) {
  if (!data_.has("hint_ids")) GTEST_SKIP() << "this record has no hints";
  const json settings = {{"ttt_weight_decay", 0.0}};
  const auto host = runner(options("", settings));
  const DocumentPlan plan = plan_documents(tokens_, 1, ttt_config(settings));
  TransformFeed feed(*host->transform(), TransformOrder::file, tokens_, plan, model_.vocabulary, 1);
  const std::vector<std::int32_t> hints = data_.ints("hint_ids");
  const std::vector<std::uint8_t> gate = data_.bytes("hint_gate");
  std::map<std::int64_t, std::vector<mlg_bias>> proposed;  // by target
  for (const PlannedBatch& batch : plan.queue) {
    for (std::int64_t chunk = 0; chunk < batch.chunks; ++chunk) {
      feed.propose(batch, chunk, [&](std::size_t, std::int64_t target, std::span<const mlg_bias> biases) {
        proposed[target] = {biases.begin(), biases.end()};
      });
    }
  }
  int gated = 0, hits = 0;
  for (std::size_t i = 0; i < hints.size(); ++i) {
    const std::vector<mlg_bias>& proposal = proposed[static_cast<std::int64_t>(i) + 1];
    ASSERT_EQ(proposal.size(), gate[i]) << "target " << i + 1;
    if (proposal.empty()) continue;
    EXPECT_EQ(proposal[0].token, hints[i]) << "target " << i + 1;
    ++gated;
    hits += proposal[0].token == tokens_[i + 1];
  }
  EXPECT_EQ(gated, config_.at("hints_gated").get<int>());
  EXPECT_EQ(hits, config_.at("hint_hits").get<int>());
}

INSTANTIATE_TEST_SUITE_P(Records, TttLaterGolden, testing::Values("ttt-2014", "ttt-2135"),
                         [](const auto& info) { return std::string("Record") + (info.param + 4); });

}  // namespace
}  // namespace mulligan::ttt_later_golden_test
