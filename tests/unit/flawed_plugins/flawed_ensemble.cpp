// An ensemble plugin with a flaw of one's choice. Sound, a member's weight is the centre's times 1 + k / 100.
#include <mulligan/ensemble.hpp>

#include <atomic>
#include <string>

namespace {

using namespace mulligan;

struct Config {
  std::string how = "not_at_all";
};

class FlawedEnsemble : public sdk::Ensemble {
 public:
  static constexpr const char* summary = "breaks its contract as `how` says";
  static inline const sdk::Schema<Config> schema{
      sdk::key("how", &Config::how, "not_at_all, unwritten, remembers, cut, seeded_reference, bytes")};

  explicit FlawedEnsemble(const Config& config) : config_(config) {}

  void make(const sdk::EnsembleWeight& weight, float* out) const override {
    const std::int64_t count = weight.rows * weight.columns;
    const std::int64_t written = config_.how == "unwritten" ? count - 1 : count;
    float factor = 1 + static_cast<float>(weight.member) / 100;
    if (weight.reference()) factor = 1;
    if (weight.reference() && config_.how == "seeded_reference") factor = static_cast<float>(weight.seed);
    if (config_.how == "remembers") factor += static_cast<float>(++calls_);
    weight.parallel(written, 3, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        out[i] = weight.centre[i] * factor + (config_.how == "cut" ? static_cast<float>(begin) : 0.0F);
    });
  }
  double stored_bytes(std::int64_t rows, std::int64_t columns) const override {
    const double bytes = 4.0 * static_cast<double>(rows * columns);
    return config_.how == "bytes" ? -bytes : bytes;
  }

 private:
  Config config_;
  mutable std::atomic<int> calls_ = 0;
};

}  // namespace

MULLIGAN_EXPORT_ENSEMBLE(FlawedEnsemble, flawed_ensemble);
