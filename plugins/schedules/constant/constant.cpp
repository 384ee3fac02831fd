// The learning rate as configured, from the first step to the last.
#include <mulligan/schedule.hpp>

namespace {

namespace sdk = mulligan::sdk;

class Constant final : public sdk::Schedule {
 public:
  static constexpr const char* version = "1.0";
  static constexpr const char* summary = "the configured learning rate throughout";

  sdk::Rate rate(const sdk::Progress&, double base_lr) const override { return {base_lr, 0}; }
};

}  // namespace

MULLIGAN_EXPORT_SCHEDULE(Constant, constant);
