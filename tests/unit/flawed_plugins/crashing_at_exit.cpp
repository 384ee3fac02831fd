// A library that crashes when the process ends.
#include <mulligan/schedule.hpp>

#include <csignal>

namespace {

namespace sdk = mulligan::sdk;

struct Crash {
  ~Crash() { std::raise(SIGSEGV); }
} crash;

class Crashing : public sdk::Schedule {
 public:
  static constexpr const char* version = "1.0";
  static constexpr const char* summary = "sound until the end";
  sdk::Rate rate(const sdk::Progress&, double base_lr) const override { return {base_lr}; }
};

}  // namespace

MULLIGAN_EXPORT_SCHEDULE(Crashing, crashing_at_exit);
