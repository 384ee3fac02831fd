// A library that crashes while it is loaded.
#include <mulligan/schedule.hpp>

#include <csignal>

namespace {

namespace sdk = mulligan::sdk;

const int crashed = std::raise(SIGSEGV);

class Crashing : public sdk::Schedule {
 public:
  static constexpr const char* version = "1.0";
  static constexpr const char* summary = "never loaded";
  sdk::Rate rate(const sdk::Progress&, double base_lr) const override { return {base_lr, crashed}; }
};

}  // namespace

MULLIGAN_EXPORT_SCHEDULE(Crashing, crashing_library);
