// Linux's powercap: /sys/class/powercap/ZONE/{name,energy_uj,max_energy_range_uj}, energy in microjoules since
// boot, back to 0 after max_energy_range_uj (minutes to hours).
#include <algorithm>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/parse_number.h"
#include "framework/core/printable.h"
#include "lab/energy/energy_meter.h"

namespace mulligan::energy {
namespace {

namespace fs = std::filesystem;

// The first line of a file of the system's.
std::string line_of(const fs::path& file) {
  const std::string text = read_file(file, 4096);
  return text.substr(0, text.find('\n'));
}

std::uint64_t number_of(const fs::path& file) {
  const std::string text = line_of(file);
  const auto microjoules = parse_number<std::uint64_t>(text);
  if (!microjoules)
    throw run_error("'{}' holds '{}', which is not a number of microjoules.", file.string(), text);
  return *microjoules;
}

class Zone : public Counter {
 public:
  Zone(fs::path folder, std::string name)
      : folder_(std::move(folder)),
        name_(std::move(name)),
        range_(number_of(folder_ / "max_energy_range_uj")),
        last_(number_of(folder_ / "energy_uj")) {}

  std::string name() const override { return "powercap " + name_; }
  Part part() const override { return Part::cpu; }
  double read_joules() override {
    const std::uint64_t now = number_of(folder_ / "energy_uj");
    microjoules_ += wrapped_difference(last_, now, range_);
    last_ = now;
    return static_cast<double>(microjoules_) * 1e-6;
  }

 private:
  fs::path folder_;
  std::string name_;
  std::uint64_t range_, last_, microjoules_ = 0;
};

}  // namespace

// Back to 0 after `range`, so that 0 follows it.
std::uint64_t wrapped_difference(std::uint64_t before, std::uint64_t now, std::uint64_t range) {
  if (now >= before) return now - before;
  return (range >= before ? range - before : 0) + now + 1;
}

Counters cpu_counters(const fs::path& root) {
  Counters found;
  std::vector<fs::path> folders;
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(root, failed))
    folders.push_back(entry.path());
  if (failed) {
    found.absent.push_back("CPUs: this system has no powercap ('" + root.string() + "')");
    return found;
  }
  std::ranges::sort(folders);
  for (const fs::path& folder : folders) {
    if (!fs::exists(folder / "energy_uj", failed)) continue;
    try {
      const std::string name = line_of(folder / "name");
      if (name.starts_with("package") || name == "dram")
        found.counters.push_back(std::make_unique<Zone>(folder, name));
    } catch (const Error& error) {
      found.absent.push_back("CPUs: " + without_full_stop(error.what()));
      found.counters.clear();
      return found;
    }
  }
  if (found.counters.empty())
    found.absent.push_back("CPUs: no zone of '" + root.string() + "' counts the energy of a package");
  return found;
}

}  // namespace mulligan::energy
