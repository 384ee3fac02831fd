// Test-time training against the public reference (fixture folder ttt/): every scored token of every
// configuration, the sums, the base model's phases, the adapters at the end, and their gradients.
#include <gtest/gtest.h>

#include <numeric>

#include "framework/data/shard.h"
#include "tests/golden/golden_model.h"
#include "tests/golden/ttt_fixture.h"

namespace mulligan::ttt_golden_test {
namespace {

class TttGolden : public testing::Test, protected TttFixture {
 protected:
  TttGolden()
      : TttFixture("ttt", "model"),
        model_data_("model"),
        bytes_(data_.ints("base_bytes"), data_.bytes("has_leading_space"), data_.bytes("is_boundary")) {}

  TttRunner::Options options(const json& settings) const {
    TttRunner::Options options;
    options.model = golden_model(model_data_.manifest().at("config"));
    options.layer_order = settings.value("loop", config_.at("looping_active").get<bool>())
                              ? LayerOrderKind::looped
                              : LayerOrderKind::plain;
    const auto flag = [&](const char* name) { return settings.value(name, true); };
    options.adapters = fmt::format(
        "rank = {}\nalpha = {}\nwarm_start_a = {}\nq = {}\nk = {}\nv = {}\nattention_output = {}\nmlp = "
        "{}\nhead = {}\nsteps = {}",
        config_.at("rank").get<int>(), config_.at("alpha").get<double>(), flag("warm"), flag("q"), flag("k"),
        flag("v"), flag("o"), flag("mlp"), flag("lm_head"), settings.value("grad_steps", 1));
    options.lr = settings.value("lr", config_.at("lr").get<double>());
    const double decay = settings.value("wd", 2.0);
    const double beta1 = settings.value("beta1", config_.at("betas").at(0).get<double>());
    if (settings.value("opt", "adam") == "sgd") {
      options.optimizer = "sgd";
      options.optimizer_keys =
          fmt::format("momentum = {}\nweight_decay = {}\nweight_decay_mode = \"coupled\"", beta1, decay);
    } else {
      options.optimizer_keys =
          fmt::format("beta1 = {}\nbeta2 = {}\neps = {}\nweight_decay = {}", beta1,
                      config_.at("betas").at(1).get<double>(), config_.at("eps").get<double>(), decay);
    }
    options.base = base_keys(json::object());
    options.row_tokens = config_.at("eval_seq_len");
    options.draws = std::make_shared<FixtureDraws>(data_);
    return options;
  }

  TttConfig ttt_config(const json& settings) const {
    TttConfig config;
    config.batch_documents = config_.at("ttt_batch");
    config.chunk_tokens = config_.at("chunk_size");
    config.context_tokens = config_.at("ttt_eval_seq_len");
    config.prefix_documents = settings.value("prefix", config_.at("prefix_docs").get<std::int64_t>());
    config.phases = settings.value("phases", config_.at("num_phases").get<std::int64_t>());
    config.document_fraction = settings.value("fraction", 1.0);
    config.document_seed = settings.value("seed", config.document_seed);
    if (settings.contains("eval_batches")) config.order = DocumentOrder::shortest_first;
    config.on_collapse = OnCollapse::off;
    return config;
  }

  GoldenFixture model_data_;
  ByteTable bytes_;
};

TEST_F(TttGolden, StreamAndDocuments) {
  std::vector<std::uint16_t> stream =
      read_tokens(find_shards({(data_.folder() / "val").string()}, DataSplit::validation));
  EXPECT_EQ(stream.size(), config_.at("raw_tokens").get<std::size_t>());
  stream.resize(static_cast<std::size_t>(whole_rows_length(static_cast<std::int64_t>(stream.size()),
                                                           config_.at("eval_seq_len").get<std::int64_t>())));
  EXPECT_EQ(stream, tokens_);
  const std::vector<std::int32_t> expected = data_.ints("docs");
  const std::vector<Document> documents = find_documents(tokens_);
  ASSERT_EQ(2 * documents.size(), expected.size());
  for (std::size_t i = 0; i < documents.size(); ++i) {
    EXPECT_EQ(documents[i], (Document{expected[2 * i], expected[2 * i + 1]}));
  }
}

TEST_F(TttGolden, EveryConfiguration) {
  int configurations = 0, finals = 0, deltas = 0;
  for (const auto& [name, result] : results_.items()) {
    if (!result.is_object() || !result.contains("settings")) continue;
    SCOPED_TRACE(name);
    const json& settings = result.at("settings");
    for (const auto& [key, value] : settings.items()) {
      static const std::vector<std::string> known = {
          "wd",    "warm", "grad_steps", "q",    "k",      "v",    "o",        "mlp",          "opt",
          "beta1", "lr",   "prefix",     "seed", "phases", "loop", "fraction", "eval_batches", "lm_head"};
      EXPECT_NE(std::ranges::find(known, key), known.end()) << "this test does not know the setting " << key;
    }
    const std::string prefix = "cfg." + name;
    const auto host = runner(options(settings));
    const TttConfig config = ttt_config(settings);
    const TttSetup setup = host->setup(config);
    Recording recording(*host);
    TttScorer run(host->model(), setup, {tokens_, 1, &bytes_, {}}, &recording);
    const TttReport report = run.run();

    compare_losses(prefix, run);
    compare_sums(prefix, report);
    compare_trace(prefix, recording.trace);
    compare_phases(result.at("phases"), report);
    if (data_.has(prefix + ".final.lm_head.A")) {
      compare_adapters(prefix, run.adapters(config.batch_documents), host->store());
      ++finals;
    }
    const bool default_phases = !settings.contains("prefix") && !settings.contains("phases") &&
                                !settings.contains("loop") && !settings.contains("fraction") &&
                                !settings.contains("eval_batches");
    for (std::size_t i = 0; default_phases && i < recording.parameters.size(); ++i) {
      deltas += compare_deltas(fmt::format("phase{}", i + 1), recording.parameters[i]);
      const auto tokens = data_.ints(fmt::format("phase{}.tokens", i + 1));
      EXPECT_EQ(report.phases[i].tokens, static_cast<std::int64_t>(tokens.size()));
    }
    ++configurations;
  }
  EXPECT_GT(configurations, 0);
  EXPECT_GT(finals, 0);
  EXPECT_GT(deltas, 0);
}

// What a phase is trained on, token by token.
TEST_F(TttGolden, PhaseTokens) {
  const TttConfig config = ttt_config(json::object());
  const DocumentPlan plan = plan_documents(tokens_, 1, config);
  const std::vector<std::int64_t> boundaries = phase_boundaries(config, plan.chosen_documents);
  std::int64_t batches = 0, documents = 0;
  int compared = 0;
  for (const PlannedBatch& batch : plan.queue) {
    ++batches;
    documents += batch.size();
    const auto phase = static_cast<std::size_t>(compared);
    if (phase == boundaries.size() || documents < boundaries[phase]) continue;
    const std::vector<std::int32_t> expected = data_.ints(fmt::format("phase{}.tokens", phase + 1));
    const std::vector<std::uint16_t> ours = phase_tokens(tokens_, plan, batches, boundaries[phase]);
    EXPECT_EQ(std::vector<std::int32_t>(ours.begin(), ours.end()), expected);
    ++compared;
  }
  EXPECT_EQ(compared, config.phases);
}

// Without updates the score is that of the windows alone.
TEST_F(TttGolden, ReferenceWithoutUpdates) {
  TttRunner::Options frozen = options({{"prefix", 0}});
  frozen.lr = 0;
  const auto host = runner(frozen);
  const TttConfig config = ttt_config({{"prefix", 0}});
  const TttSetup setup = host->setup(config);
  const TttReport report = TttScorer(host->model(), setup, {tokens_, 1, &bytes_, {}}).run();
  EXPECT_NEAR(report.sums.mean_loss_nats(), results_.at("no_ttt_reference").at("val_loss").get<double>(),
              val_loss_tolerance);
  EXPECT_NEAR(report.sums.bpb(), results_.at("no_ttt_reference").at("val_bpb").get<double>(),
              val_bpb_tolerance);
}

// One forward and backward pass with random adapters.
TEST_F(TttGolden, ForwardAndGradients) {
  const std::vector<std::int64_t> shape = data_.shape("fwd.x");
  const WindowShape window{shape.at(0), shape.at(1), shape.at(1)};  // every position is scored
  for (const bool looping : {true, false}) {
    SCOPED_TRACE(looping ? "loop1" : "loop0");
    const std::string prefix = looping ? "fwd.loop1" : "fwd.loop0";
    const auto host = runner(options({{"loop", looping}}));
    const auto keep = [](Graph& graph, std::span<const AdapterTaps::Gradient> gradients) {
      for (const auto& [adapter, gradient] : gradients) {
        graph.call("cast", {gradient, graph.external("kept/" + adapter->name, adapter->type)});
      }
    };
    WindowProgram program(host->model(), host->adapters(), "ttt/test", window, window.context, keep);
    SharedArena arena(host->store().backend());
    arena.bind({&program.program()}, host->store());
    upload_window_rope(host->model(), window.context);
    for (const auto& tensor : program.adapters()) {
      const std::string name = fmt::format("fwd.{}.{}", place_of(tensor->kind), tensor->group);
      host->store().upload(tensor->master, slot_part(data_.floats(name), data_.shape(name), *tensor));
    }
    std::vector<std::int32_t> positions(static_cast<std::size_t>(window.tokens()));
    std::iota(positions.begin(), positions.end(), 0);
    program.set_inputs(data_.ints("fwd.x"), positions, data_.ints("fwd.y"));
    program.set_weights(data_.floats("fwd.upstream"));
    program.forward();
    const std::vector<float> losses = program.losses();
    if (data_.has(prefix + ".token_loss")) {
      const std::vector<double> expected = data_.doubles(prefix + ".token_loss");
      for (std::size_t i = 0; i < losses.size(); ++i)
        EXPECT_NEAR(losses[i], expected[i], forward_loss_tolerance);
    }
    program.update();
    int compared = 0;
    for (const auto& tensor : program.adapters()) {
      const std::string name = fmt::format("{}.{}", place_of(tensor->kind), tensor->group);
      const std::vector<float> ours = host->store().download_as<float>("kept/" + tensor->name);
      if (data_.has(prefix + ".grad." + name)) {
        const std::vector<double> all = data_.doubles(prefix + ".grad." + name);
        double scale = 0, largest = 0;
        for (const double value : all) scale = std::max(scale, std::abs(value));
        const std::vector<double> expected = slot_part(all, data_.shape(prefix + ".grad." + name), *tensor);
        for (std::size_t i = 0; i < ours.size(); ++i)
          largest = std::max(largest, std::abs(ours[i] - expected[i]));
        EXPECT_LE(largest, forward_gradient_tolerance * scale) << tensor->name;
        ++compared;
      }
      if (data_.has(prefix + ".gradnorm." + name)) {
        const auto slot = static_cast<std::size_t>(std::max<std::int64_t>(tensor->slot, 0));
        const double expected = data_.doubles(prefix + ".gradnorm." + name).at(slot);
        double squares = 0;
        for (const float value : ours) squares += static_cast<double>(value) * value;
        EXPECT_NEAR(std::sqrt(squares), expected, forward_gradient_tolerance * expected) << tensor->name;
        ++compared;
      }
    }
    EXPECT_GT(compared, 0);
  }
}

// Learning rates of the base model's chunks, from the fixture of the schedules.
TEST_F(TttGolden, BaseRates) {
  const GoldenFixture schedules("schedules");
  int compared = 0;
  for (const auto& [name, info] : schedules.manifest().at("info").items()) {
    if (!name.starts_with("global_ttt_lr.")) continue;
    const auto plugin = make_plugin<TttPlugin>(
        PluginKind::ttt, "global_sgd",
        fmt::format("lr = {}\nwarmup_chunks = {}\nwarmup_start_lr = {}", info.at("base_lr").get<double>(),
                    info.at("warmup_chunks").get<int>(), info.at("warmup_start_lr").get<double>()));
    const std::vector<double> expected = schedules.doubles(name);
    for (std::size_t chunk = 0; chunk < expected.size(); ++chunk) {
      EXPECT_NEAR(
          plugin->base_rate(static_cast<std::int64_t>(chunk), info.at("num_chunks").get<std::int64_t>()),
          expected[chunk], 1e-12)
          << name << " chunk " << chunk;
      ++compared;
    }
  }
  EXPECT_GT(compared, 0);
}

// The base model's pass alone, over the whole stream.
TEST_F(TttGolden, BaseTraining) {
  int variants = 0;
  for (const auto& [name, result] : results_.items()) {
    if (!name.starts_with("sgd.")) continue;
    SCOPED_TRACE(name);
    TttRunner::Options with = options(json::object());
    with.base = base_keys(result);
    const auto host = runner(with);
    BaseTraining training(host->model(), *host->base(), *host->base_optimizer(), with.row_tokens, 1);
    SharedArena arena(host->store().backend());
    arena.bind(training.programs(), host->store());
    const std::vector<BaseStep> steps = training.run(tokens_);
    ASSERT_EQ(steps.size(), result.at("steps").get<std::size_t>());
    EXPECT_NEAR(steps.front().loss_nats, result.at("first").get<double>(), sgd_loss_tolerance);
    EXPECT_NEAR(steps.back().loss_nats, result.at("last").get<double>(), sgd_loss_tolerance);
    if (data_.has(name + ".loss")) {
      const std::vector<double> losses = data_.doubles(name + ".loss");
      for (std::size_t i = 0; i < steps.size(); ++i)
        EXPECT_NEAR(steps[i].loss_nats, losses[i], sgd_loss_tolerance);
    }
    std::map<std::string, std::vector<float>> now;
    for (const ParameterLayout& layout : host->model().layouts) {
      now[layout.spec.name] = host->parameter(layout.spec.name);
    }
    compare_deltas(name, now);
    ++variants;
  }
  EXPECT_GT(variants, 0);
}

}  // namespace
}  // namespace mulligan::ttt_golden_test
