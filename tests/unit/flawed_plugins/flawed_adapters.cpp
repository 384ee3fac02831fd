// Adapters that break their contract in the way that `how` says. Sound ones: "bias" adds a
// vector per document and never reads block_input; "factor" multiplies the output by 1 + s
// (IA3), and so writes output_gradient.
#include <mulligan/ttt.hpp>

#include <mulligan/cpu_kernel.hpp>

#include <limits>
#include <string>

namespace {

namespace sdk = mulligan::sdk;

struct Config {
  std::string how = "bias";
};

// output [B*R, out] f32, s [B, out] f32: output += s, or kept = output; output *= 1 + s.
struct Forward {
  static constexpr const char* name = "flawed_adapters_fwd";
  static constexpr const char* signature = "inout output, in s, out kept; factor";
  static void check(const sdk::CallChecks& call) { call.dtype(0, {MLG_F32}); }
  static void run(const sdk::Launch& call) {
    const std::int64_t outputs = call.dim(1, 1), rows = call.size(0) / outputs,
                       tokens = rows / call.dim(1, 0);
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t i = 0; i < outputs; ++i) {
        float& out = call.data<float>(0)[row * outputs + i];
        const float s = call.data<const float>(1)[row / tokens * outputs + i];
        call.data<float>(2)[row * outputs + i] = out;
        out = call.attribute(0) != 0 ? out * (1 + s) : out + s;
      }
    }
  }
};

// gradient [B, out] of s; with factor: output_gradient *= 1 + s afterwards, unless told to forget.
struct Backward {
  static constexpr const char* name = "flawed_adapters_bwd";
  static constexpr const char* signature =
      "inout output_gradient, in s, in kept, out gradient; factor scale forget";
  static void check(const sdk::CallChecks& call) { call.dtype(0, {MLG_F32}); }
  static void run(const sdk::Launch& call) {
    const std::int64_t outputs = call.dim(1, 1), documents = call.dim(1, 0),
                       tokens = call.size(0) / outputs / documents;
    for (std::int64_t document = 0; document < documents; ++document) {
      for (std::int64_t i = 0; i < outputs; ++i) {
        float sum = 0;
        const float s = call.data<const float>(1)[document * outputs + i];
        for (std::int64_t token = 0; token < tokens; ++token) {
          const std::int64_t at = (document * tokens + token) * outputs + i;
          float& g = call.data<float>(0)[at];
          sum += call.attribute(0) != 0 ? g * call.data<const float>(2)[at] : g;
          if (call.attribute(0) != 0 && call.attribute(2) == 0) g *= 1 + s;
        }
        call.data<float>(3)[document * outputs + i] = static_cast<float>(call.attribute(1)) * sum;
      }
    }
  }
};

class Flawed : public sdk::Adapters {
 public:
  static constexpr const char* summary = "breaks its contract";
  static inline const sdk::Schema<Config> schema{
      sdk::key("how", &Config::how, "the way")
          .choices(
              "bias|factor|no_gradient|wrong_gradient|forgets_output_gradient|negative_steps|nan_weight|impure_plan")};
  static inline const mlg_kernel kernels[] = {sdk::cpu_kernel<Forward>(), sdk::cpu_kernel<Backward>()};

  explicit Flawed(const Config& config) : how_(config.how) {}

  std::vector<sdk::Adapter> declare(const sdk::Tap& tap) const override {
    if (std::string(tap.kind) != "mlp_down") return {};
    return {{"s", sdk::shape(MLG_F32, {tap.documents, tap.outputs}), MLG_START_ZERO, 0.0}};
  }
  void record_forward(sdk::Recorder& recorder, const sdk::Tap&, sdk::TapForward& forward) const override {
    forward.saved[0] = recorder.scratch(recorder.describe(forward.output));
    recorder.launch(Forward::name, {forward.output, forward.adapters[0], forward.saved[0]},
                    {{"factor", multiplies()}});
  }
  void record_backward(sdk::Recorder& recorder, const sdk::Tap&,
                       const sdk::TapBackward& backward) const override {
    if (how_ == "no_gradient") return;
    recorder.launch(Backward::name,
                    {backward.output_gradient, backward.forward.adapters[0], backward.forward.saved[0],
                     backward.gradients[0]},
                    {{"factor", multiplies()},
                     {"scale", how_ == "wrong_gradient" ? 1.2 : 1.0},
                     {"forget", how_ == "forgets_output_gradient"}});
  }

  void plan(const sdk::Chunk& booked, sdk::Step& step) const override {
    if (booked.chunk < 0) return;
    if (how_ == "negative_steps") step.gradient_steps = -1;
    if (how_ == "nan_weight") step.weights[booked.documents - 1] = std::numeric_limits<double>::quiet_NaN();
    if (how_ == "impure_plan") step.gradient_steps = ++calls_;
  }

 private:
  mutable std::int64_t calls_ = 0;
  bool multiplies() const { return how_ == "factor" || how_ == "forgets_output_gradient"; }
  std::string how_;
};

}  // namespace

MULLIGAN_EXPORT_TTT(Flawed, flawed_adapters);
