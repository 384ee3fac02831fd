// A complete test-time-training rule in one file, built outside of mulligan's source tree: each document has a
// full matrix W [out, in] on the values and on the MLP's result, output += x W^T. (docs/write_a_ttt_rule.md)
#include <mulligan/ttt.hpp>

#include <cmath>
#include <string_view>

namespace {

namespace sdk = mulligan::sdk;

// 1. Its keys: the defaults are these initialisers.
struct Config {
  std::int64_t first_steps = 2;
  double carry = 0.5;
};

class DocMatrix final : public sdk::Adapters {
 public:
  static constexpr const char* summary = "a matrix per document on the values and the MLP's result";
  static inline const sdk::Schema<Config> schema{
      sdk::key("first_steps", &Config::first_steps, "gradient steps on a document's first chunk")
          .range(0, 1000),
      sdk::key("carry", &Config::carry, "share of the matrices that the next batch of documents inherits")
          .range(0, 1)};

  explicit DocMatrix(const Config& config) : config_(config) {}

  // 2. Its adapters: one tensor at the taps of two kinds, zero at first.
  std::vector<sdk::Adapter> declare(const sdk::Tap& tap) const override {
    const std::string_view kind = tap.kind;
    if (kind != "v" && kind != "mlp_down") return {};
    return {{"W", sdk::shape(MLG_F32, {tap.documents, tap.outputs, tap.inputs}), MLG_START_ZERO, 0.0}};
  }

  // 3. What they add to the layer's output, and how gradients reach them.
  void record_forward(sdk::Recorder& recorder, const sdk::Tap& tap, sdk::TapForward& forward) const override {
    sdk::document_matmul(recorder, sdk::document_rows(recorder, forward.block_input, tap, tap.inputs),
                         forward.adapters[0], sdk::document_rows(recorder, forward.output, tap, tap.outputs),
                         false, true, 1.0);
  }
  void record_backward(sdk::Recorder& recorder, const sdk::Tap& tap,
                       const sdk::TapBackward& backward) const override {
    const sdk::Value d_out = sdk::document_rows(recorder, backward.output_gradient, tap, tap.outputs);
    sdk::document_matmul(recorder, d_out,
                         sdk::document_rows(recorder, backward.forward.block_input, tap, tap.inputs),
                         backward.gradients[0], true, false, 0.0);
    if (backward.input_gradient == sdk::absent) return;
    sdk::document_matmul(recorder, d_out, backward.forward.adapters[0],
                         sdk::document_rows(recorder, backward.input_gradient, tap, tap.inputs), false, false,
                         backward.accumulate);
  }

  // 4. The rule: how much is learned from a booked chunk, and what the next batch inherits (chunk -1).
  void plan(const sdk::Chunk& booked, sdk::Step& step) const override {
    for (std::int64_t i = 0; i < booked.tensor_count; ++i) step.keep[i] = config_.carry;
    if (booked.chunk < 0) return;
    step.gradient_steps = booked.chunk == 0 ? config_.first_steps : 1;
    step.lr_factor = 1.0 / std::sqrt(1.0 + static_cast<double>(booked.chunk));
  }

 private:
  Config config_;
};

}  // namespace

// 5. The one exported table.
MULLIGAN_EXPORT_TTT(DocMatrix, doc_matrix);
