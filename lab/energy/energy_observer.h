// EnergyObserver: the energy that training takes next to its seconds (metrics.energy), as "energy" in result.json.
#pragma once

#include <optional>

#include "framework/train/training_observer.h"
#include "lab/energy/energy_meter.h"

namespace mulligan::energy {

// Counts while the training clock runs, on all ranks; validations and checkpoints at the end are no part of it. Of a
// run that was resumed, since then.
class EnergyObserver : public TrainingObserver {
 public:
  void clock_starts(ObservedRun& run) override;
  void clock_stops() override;
  void before_report() override;
  void at_end(ObservedRun& run) override;
  void add_to_result(nlohmann::ordered_json& result) const override;

 private:
  bool begun_ = false;
  Meter meter_;                    // counts nothing unless metrics.energy says so
  std::int64_t first_tokens_ = 0;  // trained on before it counted
  std::int64_t tokens_ = 0;        // trained on while it did
  std::optional<Reading> total_;   // of all ranks
};

}  // namespace mulligan::energy
