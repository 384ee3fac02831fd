// A test-time-training plugin that tries to see what it must not see. `how` chooses the attempt; "not_at_all"
// is an honest adapter of rank 1 for comparison.
#include <mulligan/ttt.hpp>

#include <string>

namespace {

namespace sdk = mulligan::sdk;

struct Config {
  std::string how = "not_at_all";
};

class Peeking : public sdk::Adapters {
 public:
  static constexpr const char* version = "1.0";
  static constexpr const char* summary = "tries to see tokens that are not scored yet";
  static inline const sdk::Schema<Config> schema{
      sdk::key("how", &Config::how, "the attempt")
          .choices("not_at_all|foreign_value|state|late|next_position|other_document")};

  explicit Peeking(const Config& config) : config_(config) {}

  std::vector<sdk::Adapter> declare(const sdk::Tap& tap) const override {
    if (std::string(tap.kind) != "q") return {};
    return {{"A", sdk::shape(MLG_F32, {tap.documents, tap.outputs, tap.inputs}), MLG_START_ZERO, 0.0}};
  }

  void record_forward(sdk::Recorder& recorder, const sdk::Tap& tap, sdk::TapForward& forward) const override {
    if (config_.how == "foreign_value") {
      // Values are numbered: the first ones of every graph are the tokens and the targets.
      const sdk::Value copy = recorder.scratch(sdk::shape(MLG_F32, {tap.documents * tap.tokens}));
      recorder.launch("cast", {sdk::Value{1}, copy});
    }
    if (config_.how == "state") recorder.state("memory", recorder.describe(forward.block_input));
    if (config_.how == "late") {
      if (kept_) {
        const mlg_tensor shape = sdk::shape(MLG_F32, {1});
        sdk::Value value = sdk::absent;
        sdk::check(kept_->scratch(kept_->self, &shape, &value));
      }
      kept_ = table_of(recorder);
    }
    // The matrix of one token's features, as if all documents were one row of tokens.
    std::int64_t shift = 0;
    if (config_.how == "next_position") shift = 1;
    if (config_.how == "other_document") shift = tap.tokens;
    const std::int64_t rows = tap.documents * tap.tokens - shift;
    if (rows == 0) return;  // one document alone has no other to read
    const auto dtype = static_cast<mlg_dtype>(recorder.describe(forward.output).dtype);
    const sdk::Value read =
        recorder.view(forward.block_input, shift * tap.inputs, sdk::shape(dtype, {rows, tap.inputs}));
    const sdk::Value written = recorder.view(forward.output, 0, sdk::shape(dtype, {rows, tap.outputs}));
    const sdk::Value matrix =
        recorder.view(forward.adapters[0], 0, sdk::shape(dtype, {tap.outputs, tap.inputs}));
    recorder.launch("matmul", {read, matrix, written},
                    {{"transpose_a", false}, {"transpose_b", true}, {"alpha", 1.0}, {"beta", 1.0}});
  }

  void record_backward(sdk::Recorder& recorder, const sdk::Tap&,
                       const sdk::TapBackward& backward) const override {
    // No gradient of its own: zero times what there is.
    recorder.launch("axpby", {backward.forward.adapters[0], sdk::absent, backward.gradients[0]},
                    {{"alpha", 0.0}, {"beta", 0.0}, {"accumulate_y", false}});
    if (backward.input_gradient == sdk::absent || backward.accumulate != 0) return;
    recorder.launch("axpby", {backward.forward.block_input, sdk::absent, backward.input_gradient},
                    {{"alpha", 0.0}, {"beta", 0.0}, {"accumulate_y", false}});
  }

 private:
  // The wrapper's C table, which is its only member.
  static const mlg_recorder* table_of(sdk::Recorder& recorder) {
    return *reinterpret_cast<const mlg_recorder* const*>(&recorder);
  }

  Config config_;
  mutable const mlg_recorder* kept_ = nullptr;
};

}  // namespace

MULLIGAN_EXPORT_TTT(Peeking, peeking);
