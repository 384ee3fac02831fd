// Gradient descent that breaks its contract in the way that `how` says.
#include <mulligan/optimizer.hpp>

#include <string>
#include <vector>

namespace {

namespace sdk = mulligan::sdk;

struct Config {
  std::string how = "not_at_all";
  std::int64_t foreign = 0;
};

struct Step {
  static constexpr const char* name = "flawed_optimizer_step";
  static constexpr const char* signature =
      "in gradient, inout master, in? extra, in scalars; sign allocates offset neighbours";
  static void check(const sdk::CallChecks& call) { call.dtype(0, {MLG_F32}); }
  static void run(const sdk::Launch& call) {
    if (call.attribute(1) != 0)
      std::vector<float>(static_cast<std::size_t>(call.size(0))).swap(*call_memory());
    const double rate = static_cast<double>(call.data<const float>(3)[0]) * call.attribute(0);
    for (std::int64_t i = 0; i < call.size(0); ++i) {
      const float more = call.has(2) ? 1e-6f * call.data<const float>(2)[i] : 0.0f;
      // What depends on how many elements there are is not element-wise.
      const auto neighbours = static_cast<float>(call.attribute(3) * static_cast<double>(call.size(0)));
      call.data<float>(1)[i] -=
          static_cast<float>(rate) * (call.data<const float>(0)[i] + more + neighbours) +
          static_cast<float>(call.attribute(2));
    }
  }
  static std::vector<float>* call_memory() {
    static std::vector<float> memory;
    return &memory;
  }
};

class Flawed : public sdk::Optimizer {
 public:
  static constexpr const char* summary = "breaks its contract";
  static inline const sdk::Schema<Config> schema{
      sdk::key("how", &Config::how, "the flaw")
          .choices(
              "not_at_all|uphill|unwritten_scratch|allocates|remembers|moves_at_zero|reads_neighbours|ignores_scale|late_copy"),
      sdk::key("foreign", &Config::foreign,
               "number of a value that it uses without being handed it; 0: none")};
  static constexpr bool fused_update = true, elementwise = true;
  static inline const mlg_kernel kernels[] = {sdk::cpu_kernel<Step>()};

  explicit Flawed(const Config& config) : config_(config) {}

  std::uint32_t scalar_count() const override { return 1; }
  void record(sdk::Recorder& recorder, std::span<const sdk::Parameter> parameters,
              sdk::Value scalars) override {
    if (config_.foreign != 0) {
      const auto value = static_cast<sdk::Value>(config_.foreign);
      recorder.launch("axpby", {value, sdk::absent, value},
                      {{"alpha", 1.0}, {"beta", 0.0}, {"accumulate_y", false}});
    }
    for (const sdk::Parameter& parameter : parameters) {
      const sdk::Value extra = config_.how == "unwritten_scratch"
                                   ? recorder.scratch(recorder.describe(parameter.gradient))
                                   : sdk::absent;
      recorder.launch(Step::name, {parameter.gradient, parameter.master, extra, scalars},
                      {{"sign", config_.how == "uphill" ? -1.0 : 1.0},
                       {"allocates", config_.how == "allocates"},
                       {"offset", config_.how == "moves_at_zero" ? 1e-3 : 0.0},
                       {"neighbours", config_.how == "reads_neighbours" ? 1e-5 : 0.0}});
    }
  }
  void record_update(sdk::Recorder& recorder, std::span<const sdk::Parameter> parameters, sdk::Value scalars,
                     const sdk::Update& update) override {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const sdk::Value master = parameters[i].master, copy = update.copies[i];
      const bool late = config_.how == "late_copy";
      if (update.gradient_scale != sdk::absent && config_.how != "ignores_scale")
        recorder.launch("scale_by", {parameters[i].gradient, update.gradient_scale});
      if (copy != sdk::absent && late) recorder.launch("cast", {master, copy});
      record(recorder, parameters.subspan(i, 1), scalars);
      if (copy != sdk::absent && !late) recorder.launch("cast", {master, copy});
      if (update.averages[i] != sdk::absent)
        recorder.launch("lerp_into", {update.averages[i], master}, {{"decay", update.average_decay}});
    }
  }
  void scalars(const sdk::Step& step, std::span<float> values) const override {
    calls_ = calls_ + 1;
    values[0] = static_cast<float>(
        config_.how == "remembers" ? step.lr / (1.0 + 1e-3 * static_cast<double>(calls_)) : step.lr);
  }

 private:
  Config config_;
  mutable long calls_ = 0;
};

}  // namespace

MULLIGAN_EXPORT_OPTIMIZER(Flawed, flawed_optimizer);
