// Adapters, a matrix per document on the queries, whose rule chooses what its keys say.
#include <mulligan/ttt.hpp>

#include <string>

namespace {

namespace sdk = mulligan::sdk;

struct Config {
  std::int64_t steps = 1;
  double lr_factor = 1;
  double first_weight = 1;
  double keep = 0;
  bool keep_state = false;
  bool by_loss = false;
};

class Planning : public sdk::Adapters {
 public:
  static constexpr const char* summary = "chooses what its keys say";
  static inline const sdk::Schema<Config> schema{
      sdk::key("steps", &Config::steps, "gradient steps on each chunk"),
      sdk::key("lr_factor", &Config::lr_factor, "factor of the learning rate"),
      sdk::key("first_weight", &Config::first_weight, "weight of a batch's first document"),
      sdk::key("keep", &Config::keep, "of all adapters"),
      sdk::key("keep_state", &Config::keep_state, "of the optimiser"),
      sdk::key("by_loss", &Config::by_loss,
               "two steps where some document's last chunk was worse than its first")};

  explicit Planning(const Config& config) : config_(config) {}

  std::vector<sdk::Adapter> declare(const sdk::Tap& tap) const override {
    if (std::string(tap.kind) != "q") return {};
    return {{"A", sdk::shape(MLG_F32, {tap.documents, tap.outputs, tap.inputs}), MLG_START_UNIFORM, 0.02}};
  }
  void record_forward(sdk::Recorder& recorder, const sdk::Tap& tap, sdk::TapForward& forward) const override {
    sdk::document_matmul(recorder, sdk::document_rows(recorder, forward.block_input, tap, tap.inputs),
                         forward.adapters[0], sdk::document_rows(recorder, forward.output, tap, tap.outputs),
                         false, true, 1.0);
  }
  void record_backward(sdk::Recorder& recorder, const sdk::Tap& tap,
                       const sdk::TapBackward& backward) const override {
    const sdk::Value above = sdk::document_rows(recorder, backward.output_gradient, tap, tap.outputs);
    sdk::document_matmul(recorder, above,
                         sdk::document_rows(recorder, backward.forward.block_input, tap, tap.inputs),
                         backward.gradients[0], true, false, 0.0);
    if (backward.input_gradient == sdk::absent) return;
    sdk::document_matmul(recorder, above, backward.forward.adapters[0],
                         sdk::document_rows(recorder, backward.input_gradient, tap, tap.inputs), false, false,
                         backward.accumulate);
  }
  void plan(const sdk::Chunk& booked, sdk::Step& step) const override {
    for (std::int64_t i = 0; i < booked.tensor_count; ++i) step.keep[i] = config_.keep;
    step.keep_state = config_.keep_state;
    step.gradient_steps = config_.steps;
    step.lr_factor = config_.lr_factor;
    if (booked.documents > 0) step.weights[0] = config_.first_weight;
    for (std::int64_t i = 0; config_.by_loss && i < booked.documents; ++i) {
      const mlg_ttt_document& document = booked.document[i];
      if (document.losses[document.chunks - 1] > document.losses[0]) step.gradient_steps = 2;
    }
  }

 private:
  Config config_;
};

}  // namespace

MULLIGAN_EXPORT_TTT(Planning, planning);
