#include "lab/energy/energy_observer.h"

#include <nlohmann/json.hpp>

namespace mulligan::energy {

// In the thread that owns the device's context, which says which GPU it is.
void EnergyObserver::clock_starts(ObservedRun& run) {
  if (!run.loaded.config.metrics.energy) return;
  if (!begun_) {
    begun_ = true;
    first_tokens_ = run.tokens;
    std::vector<Counters> counters;
    if (run.ranks.group().local_rank() == 0) counters.push_back(processor_counters());
    counters.push_back(gpu_counters());
    meter_ = Meter(std::move(counters));
  }
  meter_.resume();
}

void EnergyObserver::clock_stops() {
  meter_.pause();
}

void EnergyObserver::before_report() {
  meter_.poll();
}

void EnergyObserver::at_end(ObservedRun& run) {
  if (!run.loaded.config.metrics.energy) return;
  std::vector<RankReading> readings;
  const RankReading own{meter_.reading(), run.ranks.group().local_rank() == 0};
  for (const std::string& text : run.ranks.group().gather_texts(to_text(own)))
    readings.push_back(rank_reading_of(text));
  total_ = total(readings);
  tokens_ = run.tokens - first_tokens_;
}

// A figure that was not measured is null, with the reasons in "absent".
void EnergyObserver::add_to_result(nlohmann::ordered_json& result) const {
  using Json = nlohmann::ordered_json;
  if (!total_) return;
  const auto figure = [](bool measured, double value) { return measured ? Json(value) : Json(); };
  result["energy"] = {{"joules", figure(total_->measured(), total_->joules())},
                      {"joules_per_token", figure(total_->measured() && tokens_ > 0,
                                                  total_->joules() / static_cast<double>(tokens_))},
                      {"processor_joules", figure(total_->processors, total_->processor_joules)},
                      {"gpu_joules", figure(total_->gpus, total_->gpu_joules)},
                      {"tokens", tokens_},
                      {"counters", total_->counters},
                      {"absent", total_->absent}};
}

}  // namespace mulligan::energy
