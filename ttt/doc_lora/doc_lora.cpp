// The test-time-training plugin `doc_lora`: low-rank adapters per document and execution slot.
//
//   output += (x A^T) B^T * alpha / rank,   A [B, r, in] uniform in +-1/sqrt(in), B [B, out, r] zero
//
// x is the block's normed input, also for the attention output and the MLP's down projection: their adapters
// run parallel to the whole attention or MLP, not after it. (docs/record_run.md#adapters)
//
// The rule takes `steps` gradient steps on each chunk. With lr_decay < 1 the learning rate falls over a document's
// chunks; with patience > 0 a document stops learning while its booked losses do not fall.
#include <mulligan/ttt.hpp>

#include <cmath>
#include <string_view>

namespace mulligan::ttt {
namespace {

struct DocLoraConfig {
  std::int64_t rank = 128;
  double alpha = 144.0;
  bool q = true;
  bool k = true;
  bool v = true;
  bool attention_output = true;
  bool mlp = true;
  bool head = true;
  std::int64_t steps = 1;
  double lr_decay = 1.0;
  std::int64_t patience = 0;
  bool warm_start_a = true;
  bool warm_start_b = false;
  bool keep_moments = false;
};

enum : std::size_t { kA, kB };   // adapters as declared
enum : std::size_t { kHidden };  // saved: x A^T [B, R, r]

class DocLora : public sdk::Adapters {
 public:
  static constexpr const char* summary = "low-rank adapters per document on the linear layers and the head";
  static inline const sdk::Schema<DocLoraConfig> schema{
      sdk::key("rank", &DocLoraConfig::rank, "rank of the adapters").range(1, 65536),
      sdk::key("alpha", &DocLoraConfig::alpha, "adapters are multiplied by alpha / rank").range(0, 1e6),
      sdk::key("q", &DocLoraConfig::q, "adapt the query projections"),
      sdk::key("k", &DocLoraConfig::k, "adapt the key projections"),
      sdk::key("v", &DocLoraConfig::v, "adapt the value projections"),
      sdk::key("attention_output", &DocLoraConfig::attention_output,
               "adapt the attention's result, reading the attention's normed input"),
      sdk::key("mlp", &DocLoraConfig::mlp, "adapt the MLP's result, reading the MLP's normed input"),
      sdk::key("head", &DocLoraConfig::head, "adapt the logits, reading the final norm"),
      sdk::key("steps", &DocLoraConfig::steps, "gradient steps on each chunk").range(1, 1000),
      sdk::key("lr_decay", &DocLoraConfig::lr_decay, "factor of the learning rate from a chunk to the next")
          .range(0, 1),
      sdk::key(
          "patience", &DocLoraConfig::patience,
          "a document learns nothing after so many chunks in a row that are not below the mean loss of the "
          "chunks before them; 0: it always learns")
          .range(0, 65536),
      sdk::key("warm_start_a", &DocLoraConfig::warm_start_a,
               "A is carried over from one batch of documents to the next; false: A is redrawn"),
      sdk::key("warm_start_b", &DocLoraConfig::warm_start_b,
               "B is carried over, too; false: B starts at zero"),
      sdk::key("keep_moments", &DocLoraConfig::keep_moments,
               "the optimiser's state is carried over, too; false: it starts empty")};

  explicit DocLora(const DocLoraConfig& config) : config_(config) {}

  std::vector<sdk::Adapter> declare(const sdk::Tap& tap) const override {
    if (!wanted(tap.kind)) return {};
    const std::int64_t rank = config_.rank;
    return {{"A", sdk::shape(MLG_F32, {tap.documents, rank, tap.inputs}), MLG_START_UNIFORM,
             1.0 / std::sqrt(static_cast<double>(tap.inputs))},
            {"B", sdk::shape(MLG_F32, {tap.documents, tap.outputs, rank}), MLG_START_ZERO, 0.0}};
  }

  void record_forward(sdk::Recorder& recorder, const sdk::Tap& tap, sdk::TapForward& forward) const override {
    const auto dtype = static_cast<mlg_dtype>(recorder.describe(forward.output).dtype);
    const sdk::Value hidden = recorder.scratch(sdk::shape(dtype, {tap.documents, tap.tokens, config_.rank}));
    sdk::document_matmul(recorder, sdk::document_rows(recorder, forward.block_input, tap, tap.inputs),
                         forward.adapters[kA], hidden, false, true, 0.0);
    sdk::document_matmul(recorder, hidden, forward.adapters[kB],
                         sdk::document_rows(recorder, forward.output, tap, tap.outputs), false, true, 1.0,
                         scale());
    forward.saved[kHidden] = hidden;
  }

  void record_backward(sdk::Recorder& recorder, const sdk::Tap& tap,
                       const sdk::TapBackward& backward) const override {
    const sdk::TapForward& forward = backward.forward;
    const sdk::Value hidden = forward.saved[kHidden];
    const sdk::Value d_out = sdk::document_rows(recorder, backward.output_gradient, tap, tap.outputs);
    const sdk::Value d_hidden = recorder.scratch(recorder.describe(hidden));
    sdk::document_matmul(recorder, d_out, hidden, backward.gradients[kB], true, false, 0.0, scale());
    sdk::document_matmul(recorder, d_out, forward.adapters[kB], d_hidden, false, false, 0.0, scale());
    sdk::document_matmul(recorder, d_hidden,
                         sdk::document_rows(recorder, forward.block_input, tap, tap.inputs),
                         backward.gradients[kA], true, false, 0.0);
    if (backward.input_gradient == sdk::absent) return;
    sdk::document_matmul(recorder, d_hidden, forward.adapters[kA],
                         sdk::document_rows(recorder, backward.input_gradient, tap, tap.inputs), false, false,
                         backward.accumulate);
  }

  void plan(const sdk::Chunk& booked, sdk::Step& step) const override {
    step.keep_state = config_.keep_moments;
    for (std::int64_t i = 0; i < booked.tensor_count; ++i) {
      const bool is_a = std::string_view(booked.tensors[i].name) == "A";
      step.keep[i] = (is_a ? config_.warm_start_a : config_.warm_start_b) ? 1.0 : 0.0;
    }
    // A factor for each chunk, not std::pow: all machines must get the same bits.
    for (std::int64_t i = 0; i < booked.chunk; ++i) step.lr_factor *= config_.lr_decay;
    step.gradient_steps = config_.patience == 0 ? config_.steps : 0;
    for (std::int64_t i = 0; config_.patience > 0 && i < booked.documents; ++i) {
      step.weights[i] = stalled(booked.document[i]) ? 0.0 : 1.0;
      if (booked.document[i].more && step.weights[i] > 0) step.gradient_steps = config_.steps;
    }
  }

 private:
  bool stalled(const mlg_ttt_document& document) const {
    double sum = 0;
    std::int64_t in_a_row = 0;  // chunks whose loss is not below the mean of all earlier ones
    for (std::int64_t i = 0; i < document.chunks; ++i) {
      in_a_row = i > 0 && document.losses[i] >= sum / static_cast<double>(i) ? in_a_row + 1 : 0;
      sum += document.losses[i];
    }
    return in_a_row >= config_.patience;
  }

  double scale() const { return config_.alpha / static_cast<double>(config_.rank); }

  bool wanted(std::string_view kind) const {
    if (kind == "q") return config_.q;
    if (kind == "k") return config_.k;
    if (kind == "v") return config_.v;
    if (kind == "attention_output") return config_.attention_output;
    if (kind == "mlp_down") return config_.mlp;
    return kind == "head" && config_.head;
  }

  DocLoraConfig config_;
};

}  // namespace
}  // namespace mulligan::ttt

MULLIGAN_EXPORT_TTT(mulligan::ttt::DocLora, doc_lora);
