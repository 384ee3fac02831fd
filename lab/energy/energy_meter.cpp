#include "lab/energy/energy_meter.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "framework/core/error.h"
#include "framework/core/json_fields.h"
#include "framework/core/json_file.h"
#include "framework/core/printable.h"

namespace mulligan::energy {

using Json = nlohmann::ordered_json;

std::optional<double> Reading::joules() const {
  if (!cpu_joules && !gpu_joules) return {};
  return cpu_joules.value_or(0) + gpu_joules.value_or(0);
}

Meter::Meter(std::vector<Counters> counters) {
  for (Counters& kind : counters) {
    absent_.insert(absent_.end(), kind.absent.begin(), kind.absent.end());
    for (auto& counter : kind.counters) counted_.push_back({std::move(counter), 0, 0});
  }
}

// A package that can no longer be read makes its kind's sum a part of the whole, which is none: the kind goes.
void Meter::read(bool count) {
  std::vector<Part> failed;
  for (Counted& one : counted_) {
    try {
      const double now = one.counter->read_joules();
      if (count) one.joules += now - one.last;
      one.last = now;
    } catch (const Error& error) {
      absent_.push_back(without_full_stop(error.what()));
      failed.push_back(one.counter->part());
    }
  }
  std::erase_if(counted_, [&](const Counted& one) {
    return std::ranges::find(failed, one.counter->part()) != failed.end();
  });
}

void Meter::resume() {
  read(false);
  running_ = true;
}

void Meter::pause() {
  if (running_) read(true);
  running_ = false;
}

void Meter::poll() {
  if (running_) read(true);
}

Reading Meter::reading() const {
  Reading result;
  result.absent = absent_;
  for (const Counted& one : counted_) {
    const bool gpu = one.counter->part() == Part::gpu;
    result.counters.push_back(one.counter->name());
    std::optional<double>& sum = gpu ? result.gpu_joules : result.cpu_joules;
    sum = sum.value_or(0) + one.joules;
  }
  return result;
}

Reading total(const std::vector<RankReading>& ranks) {
  Reading all;
  if (!ranks.empty()) all.cpu_joules = all.gpu_joules = 0;
  const auto add = [](std::optional<double>& sum, const std::optional<double>& own) {
    sum = sum && own ? std::optional(*sum + *own) : std::nullopt;
  };
  for (const RankReading& rank : ranks) {
    const Reading& own = rank.reading;
    add(all.gpu_joules, own.gpu_joules);
    if (rank.counts_cpus) add(all.cpu_joules, own.cpu_joules);
    for (const std::string& why : own.absent) {
      if (std::ranges::find(all.absent, why) == all.absent.end()) all.absent.push_back(why);
    }
    all.counters.insert(all.counters.end(), own.counters.begin(), own.counters.end());
  }
  return all;
}

template <typename Fields>
void describe(Fields& f, RankReading& rank) {
  f("counters", rank.reading.counters)("absent", rank.reading.absent)("counts_cpus", rank.counts_cpus);
  f.maybe("cpu_joules", rank.reading.cpu_joules).maybe("gpu_joules", rank.reading.gpu_joules);
}

std::string to_text(const RankReading& rank) {
  return fields_to_json(rank).dump();
}

RankReading rank_reading_of(const std::string& text) {
  return fields_from_json<RankReading>(nlohmann::ordered_json::parse(text));
}

// In the thread that owns the device's context, which says which GPU it is.
void EnergyObserver::clock_starts(const ObservedRun& run) {
  if (!run.loaded.config.metrics.energy) return;
  if (!begun_) {
    begun_ = true;
    first_tokens_ = run.tokens;
    std::vector<Counters> counters;
    if (run.ranks.group().local_rank() == 0) counters.push_back(cpu_counters());
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

void EnergyObserver::at_end(const ObservedRun& run) {
  if (!run.loaded.config.metrics.energy) return;
  std::vector<RankReading> readings;
  const RankReading own{meter_.reading(), run.ranks.group().local_rank() == 0};
  for (const std::string& text : run.ranks.group().all_gather(to_text(own)))
    readings.push_back(rank_reading_of(text));
  total_ = total(readings);
  tokens_ = run.tokens - first_tokens_;
}

// A figure that was not measured is null, with the reasons in "absent".
void EnergyObserver::add_to_result(nlohmann::ordered_json& result) const {
  if (!total_) return;
  const std::optional<double> joules = total_->joules();
  std::optional<double> per_token;
  if (joules && tokens_ > 0) per_token = *joules / static_cast<double>(tokens_);
  result["energy"] = {{"joules", value_or_null<Json>(joules)},
                      {"joules_per_token", value_or_null<Json>(per_token)},
                      {"processor_joules", value_or_null<Json>(total_->cpu_joules)},
                      {"gpu_joules", value_or_null<Json>(total_->gpu_joules)},
                      {"tokens", tokens_},
                      {"counters", total_->counters},
                      {"absent", total_->absent}};
}

}  // namespace mulligan::energy
