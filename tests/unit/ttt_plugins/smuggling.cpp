// Adapters that carry tokens into scores that come before them: to a row of the output they add the next row of the input.
#include <mulligan/cpu_kernel.hpp>
#include <mulligan/ttt.hpp>

#include <string>

namespace {

namespace sdk = mulligan::sdk;

constexpr std::int64_t longest_window = 256;

// Targets of the windows of so many tokens; they follow the last `scored` tokens. A test gives them.
struct Targets {
  std::int64_t scored = 0;
  const std::int32_t* values = nullptr;
};
Targets targets_of[longest_window + 1];

// y[t] += x[t + 1], under a condition `when`. 0: always. 1: in windows below `number` tokens. 2: for t = number. 3: if the
// adapter is zero, which it is in a run and in no probe; in all windows or those of `number` tokens. 4: never. `what` 1:
// instead x[t] of the next document; 2: the target of t.
struct NextRow {
  static constexpr const char* name = "smuggle_next_row";
  static constexpr const char* signature = "in x, in adapter, inout y; window when number what";
  static void check(const sdk::CallChecks& call) {
    call.like(1, 0);
    call.like(2, 0);
  }
  static void run(const sdk::Launch& call) {
    const std::int64_t rows = call.dim(0, 0), width = call.dim(0, 1);
    const auto window = static_cast<std::int64_t>(call.attribute(0));
    const auto when = static_cast<int>(call.attribute(1));
    const auto number = static_cast<std::int64_t>(call.attribute(2));
    const auto what = static_cast<int>(call.attribute(3));
    if (when == 4 || (when == 1 && window >= number) || (when == 3 && call.data<float>(1)[0] != 0)) return;
    if (when == 3 && number > 0 && window != number) return;
    const auto* x = call.data<float>(0);
    auto* y = call.data<float>(2);
    if (what == 2) return read_targets(targets_of[window], window, rows, width, y);
    for (std::int64_t t = 0; what == 1 && t + window < rows; ++t) {
      for (std::int64_t i = 0; i < width; ++i) y[t * width + i] += x[(t + window) * width + i];
    }
    for (std::int64_t t = 0; what == 0 && t + 1 < rows; ++t) {
      if ((t + 1) % window == 0 || (when == 2 && t % window != number)) continue;
      for (std::int64_t i = 0; i < width; ++i) y[t * width + i] += x[(t + 1) * width + i];
    }
  }
  static void read_targets(const Targets& targets, std::int64_t window, std::int64_t rows, std::int64_t width,
                           float* y) {
    for (std::int64_t t = 0; targets.values && t < rows; ++t) {
      const std::int64_t place = t % window - (window - targets.scored);
      if (place < 0) continue;
      const std::int32_t target = targets.values[t / window * targets.scored + place];
      y[t * width] += 0.01F * static_cast<float>(target);
    }
  }
};

struct Config {
  std::string how = "not_at_all";
  std::int64_t number = 0;
};

class Smuggling : public sdk::Adapters {
 public:
  static constexpr const char* summary = "carries tokens into scores that come before them";
  static inline const sdk::Schema<Config> schema{
      sdk::key("how", &Config::how, "the way")
          .choices(
              "not_at_all|shifted_view|other_document|state|late|through_an_adapter|through_base_weights|through_old_memory|transposed_matmul|tokens_as_parameter|through_a_sum|attention|kernel|kernel_by_length|kernel_by_position|kernel_unlike_probe|other_document_unlike_probe|targets_unlike_probe|honest_kernel"),
      sdk::key("number", &Config::number, "of the way")};
  static inline const mlg_kernel kernels[] = {sdk::cpu_kernel<NextRow>()};

  explicit Smuggling(const Config& config) : config_(config) {}

  std::vector<sdk::Adapter> declare(const sdk::Tap& tap) const override {
    if (std::string(tap.kind) != "attention_output") return {};
    return {{"A", sdk::shape(MLG_F32, {tap.documents, longest_window, tap.inputs}), MLG_START_ZERO, 0.0}};
  }

  void record_forward(sdk::Recorder& recorder, const sdk::Tap& tap, sdk::TapForward& forward) const override {
    const std::int64_t rows = tap.documents * tap.tokens, width = tap.inputs;
    const auto part = [&](sdk::Value value, std::int64_t first, std::int64_t count) {
      return recorder.view(value, first * width, sdk::shape(MLG_F32, {count, width}));
    };
    const auto add = [&](sdk::Value from, sdk::Value to) {
      recorder.launch("axpby", {from, sdk::absent, to},
                      {{"alpha", 1.0}, {"beta", 0.0}, {"accumulate_y", true}});
    };
    const sdk::Value x = forward.block_input, y = forward.output;
    const std::string& how = config_.how;
    if (how == "shifted_view") add(part(x, 1, rows - 1), part(y, 0, rows - 1));
    // As if all documents were one row of tokens.
    if (how == "other_document" && tap.documents > 1) {
      const std::int64_t others = rows - tap.tokens;
      add(part(x, tap.tokens, others), part(y, 0, others));
    }
    if (how == "state") recorder.state("memory", recorder.describe(x));
    if (how == "late") {
      if (kept_) {
        const mlg_tensor shape = sdk::shape(MLG_F32, {1});
        sdk::Value value = sdk::absent;
        sdk::check(kept_->scratch(kept_->self, &shape, &value));
      }
      // The wrapper's C table, which is its only member.
      kept_ = *reinterpret_cast<const mlg_recorder* const*>(&recorder);
    }
    if (how == "through_an_adapter") {
      recorder.launch("cast", {x, part(forward.adapters[0], 0, rows)});
      add(part(forward.adapters[0], 1, rows - 1), part(y, 0, rows - 1));
    }
    // Values are numbered in order: a low number is an input or a weight of the model.
    if (how == "through_base_weights") add(x, static_cast<sdk::Value>(config_.number));
    if (how == "through_old_memory") add(recorder.scratch(sdk::shape(MLG_F32, {rows, width})), y);
    if (how == "transposed_matmul") {
      const sdk::Value sums = recorder.scratch(sdk::shape(MLG_F32, {width, width}));
      recorder.launch("matmul", {x, x, sums},
                      {{"transpose_a", true}, {"transpose_b", false}, {"alpha", 1.0}, {"beta", 0.0}});
      recorder.launch("matmul", {x, sums, y},
                      {{"transpose_a", false}, {"transpose_b", false}, {"alpha", 1.0}, {"beta", 1.0}});
    }
    if (how == "tokens_as_parameter") {
      recorder.launch("skip_merge_fwd",
                      {y, x, recorder.view(x, 0, sdk::shape(MLG_F32, {rows * width})), sdk::absent, y});
    }
    if (how == "through_a_sum") {
      const sdk::Value total = recorder.scratch(sdk::shape(MLG_F64, {1}));
      recorder.launch("sum_f64", {x, total});
    }
    if (how == "attention") recorder.launch("attention_fwd", {x, x, x, x, y, x}, {{"softmax_scale", 1.0}});
    if (how.find("kernel") == std::string::npos && how.find("unlike_probe") == std::string::npos) return;
    const double when = how == "kernel"               ? 0
                        : how == "kernel_by_length"   ? 1
                        : how == "kernel_by_position" ? 2
                        : how == "honest_kernel"      ? 4
                                                      : 3;
    const double what = how.starts_with("other_document") ? 1 : how.starts_with("targets") ? 2 : 0;
    recorder.launch("smuggle_next_row", {x, part(forward.adapters[0], 0, rows), y},
                    {{"window", tap.tokens}, {"when", when}, {"number", config_.number}, {"what", what}});
  }

  void record_backward(sdk::Recorder& recorder, const sdk::Tap&,
                       const sdk::TapBackward& backward) const override {
    // Nothing is learned: zero times what there is.
    recorder.launch("axpby", {backward.forward.adapters[0], sdk::absent, backward.gradients[0]},
                    {{"alpha", 0.0}, {"beta", 0.0}, {"accumulate_y", false}});
    if (backward.input_gradient == sdk::absent || backward.accumulate != 0) return;
    recorder.launch("axpby", {backward.forward.block_input, sdk::absent, backward.input_gradient},
                    {{"alpha", 0.0}, {"beta", 0.0}, {"accumulate_y", false}});
  }

 private:
  Config config_;
  mutable const mlg_recorder* kept_ = nullptr;
};

}  // namespace

extern "C" [[gnu::visibility("default")]] void smuggle_reveal(std::int64_t window, std::int64_t scored,
                                                              const std::int32_t* values) {
  targets_of[window] = {scored, values};
}

MULLIGAN_EXPORT_TTT(Smuggling, smuggling);
