// A constant rate, until a file appears in the folder that the ranks were started in:
//   hang.RANK   that rank waits for ever, while the rest of its process lives
//   drift.RANK  that rank's rate is another than the others'
// For the scripts here, which find out what the other ranks make of it.
#include <unistd.h>

#include <cstdlib>
#include <mulligan/schedule.hpp>
#include <string>

namespace {

namespace sdk = mulligan::sdk;

bool is_there(const std::string& fault) {
  const char* rank = std::getenv("RANK");
  return ::access((fault + "." + (rank ? rank : "0")).c_str(), F_OK) == 0;
}

class Faulty final : public sdk::Schedule {
 public:
  static constexpr const char* summary = "a constant rate with planted faults, for tests";

  sdk::Rate rate(const sdk::Progress&, double base_lr) const override {
    while (is_there("hang")) ::sleep(1);
    return {is_there("drift") ? 1.001 * base_lr : base_lr, 0};
  }
};

}  // namespace

MULLIGAN_EXPORT_SCHEDULE(Faulty, faulty);
