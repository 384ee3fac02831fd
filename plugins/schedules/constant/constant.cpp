// The configured learning rate, after a warm-up.
#include "plugins/schedules/measure.h"

namespace {

namespace sdk = mulligan::sdk;

struct Config : mulligan::schedules::Warmup {};

class Constant final : public mulligan::schedules::WarmedSchedule<Config> {
 public:
  static constexpr const char* summary = "the configured learning rate, without decay";

  static inline const sdk::Schema<Config> schema = mulligan::schedules::with_warmup_keys<Config>();

  using WarmedSchedule::WarmedSchedule;

  sdk::Rate rate(const sdk::Progress& progress, double base_lr) const override {
    return {base_lr * mulligan::schedules::warmup_factor(config_, "budget", progress), 0};
  }
};

}  // namespace

MULLIGAN_EXPORT_SCHEDULE(Constant, constant);
