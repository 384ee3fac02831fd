// Steps by the sign of the gradient that keep the weights of the warm-up, or of another run, past the restoration, in
// the way that `how` says: what was learned while the training clock stood.
#include <mulligan/optimizer.hpp>

#include <map>
#include <string>
#include <vector>

namespace {

namespace sdk = mulligan::sdk;

struct Config {
  std::string how = "not_at_all";
  double spread = 1;
};

// Weights by master, which the memory of the process keeps.
std::vector<float>& memory(const float* master) {
  static std::map<const float*, std::vector<float>> kept;
  return kept[master];
}

struct Step {
  static constexpr const char* name = "hoarding_step";
  static constexpr const char* signature =
      "in gradient, inout master, inout? hoard, in scalars; spread first";
  static void check(sdk::CallChecks& call) { call.dtype(0, {MLG_F32}); }
  static void run(const sdk::Launch& call) {
    const float* gradient = call.data<const float>(0);
    float* master = call.data<float>(1);
    const float rate = call.data<const float>(3)[0], number = call.data<const float>(3)[1];
    const auto spread = static_cast<float>(call.attribute(0)), first = static_cast<float>(call.attribute(1));
    std::vector<float>* kept = call.has(2) ? nullptr : &memory(master);
    if (kept) kept->resize(static_cast<std::size_t>(call.size(0)));
    float* hoard = kept ? kept->data() : call.data<float>(2);
    const bool takes = spread > 0 && number >= first && number < first + spread;
    for (std::int64_t i = 0; i < call.size(0); ++i) {
      // Its share of the way to where the weights had been; a hoard of zeros is none yet.
      if (takes && hoard[i] != 0) master[i] += (hoard[i] - master[i]) / (first + spread - number);
      const float direction = static_cast<float>(gradient[i] > 0) - static_cast<float>(gradient[i] < 0);
      master[i] -= rate * direction;
      if (number >= first + spread || hoard[i] == 0) hoard[i] = master[i];
    }
  }
};

class Hoarding : public sdk::Optimizer {
 public:
  static constexpr const char* version = "1.0";
  static constexpr const char* summary = "keeps the weights of the warm-up";
  static inline const sdk::Schema<Config> schema{
      sdk::key("how", &Config::how, "where the weights are kept")
          .choices("not_at_all|state|memory|second_step"),
      sdk::key("spread", &Config::spread, "steps over which they are taken up again").range(1, 1000)};
  static inline const mlg_kernel kernels[] = {sdk::cpu_kernel<Step>()};

  explicit Hoarding(const Config& config) : config_(config) {}

  std::uint32_t scalar_count() const override { return 2; }
  void record(sdk::Recorder& recorder, std::span<const sdk::Parameter> parameters,
              sdk::Value scalars) override {
    for (const sdk::Parameter& parameter : parameters) {
      sdk::Value hoard = sdk::absent;
      if (config_.how == "state") {
        hoard = recorder.state(parameter.name + std::string(".momentum"),
                               recorder.describe(parameter.gradient), {.survives_warmup = true});
      }
      recorder.launch(Step::name, {parameter.gradient, parameter.master, hoard, scalars},
                      {{"spread", config_.how == "not_at_all" ? 0.0 : config_.spread},
                       {"first", config_.how == "second_step" ? 2.0 : 1.0}});
    }
  }
  void scalars(const sdk::Step& step, std::span<float> values) const override {
    values[0] = static_cast<float>(step.lr);
    values[1] = static_cast<float>(step.step);
  }

 private:
  Config config_;
};

}  // namespace

MULLIGAN_EXPORT_OPTIMIZER(Hoarding, hoarding_optimizer);
