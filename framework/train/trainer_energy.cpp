// The energy that training takes, beside its seconds (metrics.energy).
#include "framework/train/trainer.h"

namespace mulligan {

void Trainer::run_clock() {
  budget_.resume();
  energy_.resume();
}

void Trainer::stop_clock() {
  budget_.pause();
  energy_.pause();
}

// In the thread that owns the device's context, which says which GPU it is.
void Trainer::begin_energy() {
  energy_first_ = tokens_;
  if (!config_.metrics.energy) return;
  std::vector<energy::Counters> counters;
  if (ranks_.group().local_rank() == 0) counters.push_back(energy::processor_counters());
  counters.push_back(energy::gpu_counters());
  energy_ = energy::Meter(std::move(counters));
}

void Trainer::collect_energy() {
  if (!config_.metrics.energy) return;
  std::vector<energy::RankReading> readings;
  const energy::RankReading own{energy_.reading(), ranks_.group().local_rank() == 0};
  for (const std::string& text : ranks_.group().gather_texts(energy::to_text(own)))
    readings.push_back(energy::rank_reading_of(text));
  result_.energy = energy::total(readings);
  result_.energy_tokens = tokens_ - energy_first_;
}

}  // namespace mulligan
