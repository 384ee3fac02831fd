// An optimiser for adapters that uses values of the program which it was not given.
#include <mulligan/optimizer.hpp>

#include <string>

namespace {

namespace sdk = mulligan::sdk;

struct Config {
  std::int64_t value = 0;  // 0: reaches for nothing
};

class Reaching final : public sdk::Optimizer {
 public:
  static constexpr const char* version = "1.0";
  static constexpr const char* summary = "reaches for values that it was not handed";
  static constexpr std::uint32_t state_version = 1;
  static inline const sdk::Schema<Config> schema{sdk::key("value", &Config::value, "number of the value")};

  explicit Reaching(const Config& config) : config_(config) {}

  std::uint32_t scalar_count() const override { return 0; }
  void record(sdk::Recorder& recorder, std::span<const sdk::Parameter> parameters, sdk::Value) override {
    for (const sdk::Parameter& parameter : parameters) {
      const sdk::Value memory =
          recorder.state(std::string(parameter.name) + "/memory", recorder.describe(parameter.master));
      recorder.launch("axpby", {parameter.gradient, sdk::absent, memory},
                      {{"alpha", 1.0}, {"beta", 0.0}, {"accumulate_y", true}});
    }
    if (config_.value == 0) return;
    const auto value = static_cast<sdk::Value>(config_.value);
    recorder.launch("axpby", {value, sdk::absent, value},
                    {{"alpha", 1.0}, {"beta", 0.0}, {"accumulate_y", false}});
  }
  void scalars(const sdk::Step&, std::span<float>) const override {}

 private:
  Config config_;
};

}  // namespace

MULLIGAN_EXPORT_OPTIMIZER(Reaching, reaching);
