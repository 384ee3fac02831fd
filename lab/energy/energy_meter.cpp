#include "lab/energy/energy_meter.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "framework/core/error.h"

namespace mulligan::energy {

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
      std::string reason = error.what();
      if (reason.ends_with('.')) reason.pop_back();
      absent_.push_back(std::move(reason));
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
    (gpu ? result.gpu_joules : result.cpu_joules) += one.joules;
    (gpu ? result.gpus : result.cpus) = true;
  }
  return result;
}

Reading total(const std::vector<RankReading>& ranks) {
  Reading all;
  all.cpus = all.gpus = !ranks.empty();
  for (const RankReading& rank : ranks) {
    const Reading& own = rank.reading;
    all.gpus = all.gpus && own.gpus;
    all.gpu_joules += own.gpu_joules;
    if (rank.counts_cpus) {
      all.cpus = all.cpus && own.cpus;
      all.cpu_joules += own.cpu_joules;
    }
    for (const std::string& why : own.absent) {
      const bool others = !rank.counts_cpus && why.starts_with("CPUs:");
      if (!others && std::ranges::find(all.absent, why) == all.absent.end()) all.absent.push_back(why);
    }
    all.counters.insert(all.counters.end(), own.counters.begin(), own.counters.end());
  }
  if (!all.gpus) all.gpu_joules = 0;
  if (!all.cpus) all.cpu_joules = 0;
  return all;
}

std::string to_text(const RankReading& rank) {
  const Reading& own = rank.reading;
  return nlohmann::json{
      {"counters", own.counters},       {"absent", own.absent}, {"cpu_joules", own.cpu_joules},
      {"gpu_joules", own.gpu_joules},   {"cpus", own.cpus},     {"gpus", own.gpus},
      {"counts_cpus", rank.counts_cpus}}
      .dump();
}

RankReading rank_reading_of(const std::string& text) {
  const auto json = nlohmann::json::parse(text);
  RankReading rank;
  rank.counts_cpus = json.at("counts_cpus");
  rank.reading = {json.at("counters"),   json.at("absent"), json.at("cpu_joules"),
                  json.at("gpu_joules"), json.at("cpus"),   json.at("gpus")};
  return rank;
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
  using Json = nlohmann::ordered_json;
  if (!total_) return;
  const auto figure = [](bool measured, double value) { return measured ? Json(value) : Json(); };
  result["energy"] = {{"joules", figure(total_->measured(), total_->joules())},
                      {"joules_per_token", figure(total_->measured() && tokens_ > 0,
                                                  total_->joules() / static_cast<double>(tokens_))},
                      {"processor_joules", figure(total_->cpus, total_->cpu_joules)},
                      {"gpu_joules", figure(total_->gpus, total_->gpu_joules)},
                      {"tokens", tokens_},
                      {"counters", total_->counters},
                      {"absent", total_->absent}};
}

}  // namespace mulligan::energy
