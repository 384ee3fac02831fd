// A schedule that breaks its contract in the way that `how` says, from step `from_step` (from 1) on.
#include <mulligan/schedule.hpp>

#include <cmath>
#include <string>
#include <vector>

namespace {

namespace sdk = mulligan::sdk;

struct Config {
  std::string how = "not_at_all";
  std::int64_t from_step = 1;
  double factor = 0.5;
};

class Flawed : public sdk::Schedule {
 public:
  static constexpr const char* summary = "breaks its contract";
  static inline const sdk::Schema<Config> schema{
      sdk::key("how", &Config::how, "the flaw")
          .choices(
              "not_at_all|negative|nan|infinite|negative_factor|impure|allocates|momentum|weight_decay|batch"),
      sdk::key("from_step", &Config::from_step, "first step with it").at_least(1),
      sdk::key("factor", &Config::factor, "of the momentum, the weight decay or the batch")};

  explicit Flawed(const Config& config) : config_(config) {}

  sdk::Rate rate(const sdk::Progress& progress, double base_lr) const override {
    sdk::Rate rate{base_lr, 0};
    if (progress.step + 1 < config_.from_step) return rate;
    if (config_.how == "negative") rate.lr = -base_lr - 1e-9;
    if (config_.how == "nan") rate.lr = std::nan("");
    if (config_.how == "infinite") rate.lr = INFINITY;
    if (config_.how == "negative_factor") rate.weight_decay_factor = -1;
    if (config_.how == "impure") rate.lr = base_lr / static_cast<double>(calls_ = calls_ + 1);
    if (config_.how == "allocates") memory_ = std::vector<int>(memory_.size() + 1);
    if (config_.how == "momentum") rate.momentum_factor = config_.factor;
    if (config_.how == "weight_decay") rate.weight_decay_factor = config_.factor;
    if (config_.how == "batch") rate.batch_factor = config_.factor;
    return rate;
  }

 private:
  Config config_;
  mutable long calls_ = 0;
  mutable std::vector<int> memory_;
};

}  // namespace

MULLIGAN_EXPORT_SCHEDULE(Flawed, flawed_schedule);
