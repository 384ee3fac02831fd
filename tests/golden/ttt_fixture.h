// Runs of test-time training against fixtures of the family ttt: what is compared, and how exactly.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/golden/golden_fixture.h"
#include "tests/support/ttt_runner.h"

namespace mulligan {

using json = nlohmann::json;

// Tolerances of the fixtures' README, section 11, for an f32 implementation.
inline constexpr double token_loss_mean = 2e-5, token_loss_max = 1e-3;
inline constexpr double val_loss_tolerance = 1e-5, val_bpb_tolerance = 5e-6;
inline constexpr double adapter_tolerance = 5e-4, adapter_share = 0.999;
inline constexpr double delta_tolerance = 6e-6;
inline constexpr double forward_loss_tolerance = 1e-4,
                        forward_gradient_tolerance = 1e-4;  // gradient: of the tensor's largest
inline constexpr double sgd_loss_tolerance = 1e-4;

// The fixture's names of the adapters' places.
inline std::string place_of(TapKind kind) {
  switch (kind) {
    case TapKind::head:
      return "lm_head";
    case TapKind::attention_output:
      return "o";
    case TapKind::mlp_down:
      return "mlp";
    default:
      return tap_kind_name(kind);
  }
}

// The part of a fixture tensor [slots, ...] (head: [...]) that belongs to an adapter, as `T`s.
template <typename T>
std::vector<T> slot_part(const std::vector<T>& all, const std::vector<std::int64_t>& shape,
                         const AdapterTensor& tensor) {
  if (tensor.slot < 0) return all;
  const auto size = all.size() / static_cast<std::size_t>(shape.at(0));
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(size) * tensor.slot;
  return {begin, begin + static_cast<std::ptrdiff_t>(size)};
}

class FixtureDraws : public PhiloxDraws {
 public:
  explicit FixtureDraws(const GoldenFixture& data) : PhiloxDraws(0), data_(data) {}
  std::vector<float> values(std::int64_t draw, const AdapterTensor& tensor) const override {
    const std::string name = fmt::format("draw{}.{}.{}", draw, place_of(tensor.kind), tensor.group);
    std::vector<float> part = slot_part(data_.floats(name), data_.shape(name), tensor);
    // The first documents of the draw, when the batch is short.
    part.resize(static_cast<std::size_t>(tensor.type.elements()));
    return part;
  }

 private:
  const GoldenFixture& data_;
};

// Keeps what the comparison needs while a run goes on.
class Recording : public TttListener {
 public:
  Recording(TttRunner& runner) : runner_(runner) {}
  void on_event(const TttEvent& event) override {
    if (event.kind == TttEventKind::phase) {
      phase_queues.push_back(event.queue);
      auto& after = parameters.emplace_back();
      for (const ParameterLayout& layout : runner_.model().layouts)
        after[layout.spec.name] = runner_.parameter(layout.spec.name);
    }
    if (event.kind != TttEventKind::update) return;
    std::map<std::string, double> squares;
    for (const AdapterNorm& norm : event.adapters->norms()) squares[norm.name] = norm.norm * norm.norm;
    trace.insert(trace.end(), {static_cast<double>(event.queue), static_cast<double>(event.chunk),
                               squares.at("A"), squares.at("B")});
  }

  std::vector<double> trace;  // rows of queue position, chunk, sum(A^2), sum(B^2)
  std::vector<std::int64_t> phase_queues;
  std::vector<std::map<std::string, std::vector<float>>> parameters;  // after each phase

 private:
  TttRunner& runner_;
};

class TttFixture {
 protected:
  // `folder`: of the family ttt; `model`: of the parameters.
  TttFixture(const std::string& folder, const std::string& model)
      : data_(folder),
        params_(model, "params.safetensors"),
        config_(data_.manifest().at("config")),
        results_(data_.manifest().at("results")) {
    for (const std::int32_t token : data_.ints("val_tokens"))
      tokens_.push_back(static_cast<std::uint16_t>(token));
  }

  // Keys of global_sgd; `settings` with the reference script's names.
  std::string base_keys(const json& settings) const {
    const json& sgd = config_.at("global_sgd");
    const auto number = [&](const char* script, const char* name) {
      return settings.value(script, sgd.at(name).get<double>());
    };
    return fmt::format(
        "lr = {}\nmomentum = {}\nclip_norm = {}\nchunk_tokens = {}\nbatch_rows = {}\nepochs = {}\n"
        "respect_documents = {}\nwarmup_chunks = {}\nwarmup_start_lr = {}",
        number("global_ttt_lr", "lr"), number("global_ttt_momentum", "momentum"),
        number("global_ttt_grad_clip", "grad_clip"), sgd.at("chunk_tokens").get<int>(),
        sgd.at("batch_seqs").get<int>(), settings.value("global_ttt_epochs", sgd.at("epochs").get<int>()),
        settings.value("global_ttt_respect_doc_boundaries", sgd.at("respect_doc_boundaries").get<bool>()),
        settings.value("global_ttt_warmup_chunks", 0), settings.value("global_ttt_warmup_start_lr", 0.0));
  }

  std::unique_ptr<TttRunner> runner(const TttRunner::Options& options) const {
    auto runner = std::make_unique<TttRunner>(options);
    for (const ParameterLayout& layout : runner->model().layouts) {
      runner->set_parameter(layout.spec.name, params_.floats(layout.spec.name));
    }
    return runner;
  }

  void compare_losses(const std::string& prefix, const TttScorer& run) const {
    const std::vector<std::int32_t> order = data_.ints(prefix + ".doc_index");
    const std::vector<std::int32_t> batches = data_.ints(prefix + ".batch_index");
    const std::vector<double> expected = data_.doubles(prefix + ".token_loss");
    std::size_t document = 0, token = 0;
    double sum = 0, largest = 0;
    for (const PlannedBatch& batch : run.documents().queue) {
      for (const int number : batch.documents) {
        ASSERT_LT(document, order.size());
        EXPECT_EQ(number, order[document]);
        EXPECT_EQ(batch.index, batches[document++]);
        const std::int64_t first = run.documents().document(number).start + 1;
        for (std::int64_t target = first; target < first + run.documents().targets(number); ++target) {
          ASSERT_LT(token, expected.size());
          const double difference = std::abs(run.book().loss(target) - expected[token++]);
          sum += difference;
          largest = std::max(largest, difference);
        }
      }
    }
    EXPECT_EQ(document, order.size());
    EXPECT_EQ(token, expected.size());
    EXPECT_LE(sum / static_cast<double>(token), token_loss_mean);
    EXPECT_LE(largest, token_loss_max);
  }

  void compare_sums(const std::string& prefix, const TttReport& report) const {
    const std::vector<double> sums = data_.doubles(prefix + ".loss_sum_byte_sum_token_count");
    EXPECT_EQ(static_cast<double>(report.sums.bytes), sums.at(1));
    EXPECT_EQ(static_cast<double>(report.sums.tokens), sums.at(2));
    const std::vector<double> scores = data_.doubles(prefix + ".val_loss_val_bpb");
    EXPECT_NEAR(report.sums.mean_loss_nats(), scores.at(0), val_loss_tolerance);
    EXPECT_NEAR(report.sums.bpb(), scores.at(1), val_bpb_tolerance);
  }

  void compare_trace(const std::string& prefix, const std::vector<double>& trace) const {
    const std::vector<double> expected = data_.doubles(prefix + ".step_trace");
    ASSERT_EQ(trace.size(), expected.size());
    for (std::size_t i = 0; i < trace.size(); ++i) {
      const bool count = i % 4 < 2;
      EXPECT_NEAR(trace[i], expected[i], count ? 0.0 : 1e-3 * expected[i] + 1e-9)
          << "row " << i / 4 << " column " << i % 4;
    }
  }

  using Doubles = std::vector<double>;
  static void compare_steps(const TttPhaseReport& phase, const Doubles& lr, const Doubles& loss,
                            const Doubles& norm) {
    SCOPED_TRACE(fmt::format("phase {}", phase.phase));
    ASSERT_EQ(phase.steps.size(), lr.size());
    for (std::size_t step = 0; step < lr.size(); ++step) {
      EXPECT_NEAR(phase.steps[step].lr, lr[step], 1e-12);
      EXPECT_NEAR(phase.steps[step].loss_nats, loss[step], sgd_loss_tolerance);
      EXPECT_NEAR(phase.steps[step].gradient_norm, norm[step], 1e-4 * norm[step]);
    }
  }

  static void compare_phases(const json& expected, const TttReport& report) {
    ASSERT_EQ(report.phases.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const auto doubles = [&](const char* name) { return expected[i].at(name).get<Doubles>(); };
      EXPECT_EQ(report.phases[i].tokens, expected[i].at("tokens").get<std::int64_t>());
      compare_steps(report.phases[i], doubles("lr"), doubles("loss"), doubles("grad_norm"));
    }
  }

  // A phase of a run, counted from 1, against the tensors phaseN.*.
  void compare_phase(const TttPhaseReport& phase) const {
    const std::string prefix = fmt::format("phase{}", phase.phase);
    EXPECT_EQ(phase.tokens, std::ssize(data_.ints(prefix + ".tokens")));
    compare_steps(phase, data_.doubles(prefix + ".lr"), data_.doubles(prefix + ".loss"),
                  data_.doubles(prefix + ".grad_norm"));
  }

  // The change of a parameter since the start against `name`.
  void compare_delta(const std::string& name, const std::string& parameter,
                     const std::vector<float>& now) const {
    const std::vector<double> expected = data_.doubles(name);
    const std::vector<float> before = params_.floats(parameter);
    ASSERT_EQ(now.size(), expected.size());
    double largest = 0;
    for (std::size_t i = 0; i < now.size(); ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(now[i]) - before[i] - expected[i]));
    }
    EXPECT_LE(largest, delta_tolerance) << name;
  }

  // Compares every delta of the fixture below `prefix`; returns how many there are.
  int compare_deltas(const std::string& prefix,
                     const std::map<std::string, std::vector<float>>& parameters) const {
    int compared = 0;
    for (const std::string& name : data_.names()) {
      if (!name.starts_with(prefix + ".delta.")) continue;
      const std::string parameter = name.substr(prefix.size() + 7);
      compare_delta(name, parameter, parameters.at(parameter));
      ++compared;
    }
    return compared;
  }

  void compare_adapters(const std::string& prefix, AdapterSet& set, TensorStore& store) const {
    std::size_t elements = 0, strays = 0;
    for (const auto& tensor : set.tensors()) {
      const std::string name = fmt::format("{}.final.{}.{}", prefix, place_of(tensor->kind), tensor->group);
      const std::vector<float> expected = slot_part(data_.floats(name), data_.shape(name), *tensor);
      const std::vector<float> ours = store.download_as<float>(tensor->master);
      ASSERT_EQ(ours.size(), expected.size());
      for (std::size_t i = 0; i < ours.size(); ++i) {
        ++elements;
        if (!(std::abs(ours[i] - expected[i]) <= adapter_tolerance)) ++strays;
      }
    }
    EXPECT_GT(elements, 0u);
    EXPECT_LE(static_cast<double>(strays), (1.0 - adapter_share) * static_cast<double>(elements));
  }

  GoldenFixture data_, params_;
  json config_, results_;
  std::vector<std::uint16_t> tokens_;
};

}  // namespace mulligan
