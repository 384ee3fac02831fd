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
    (gpu ? result.gpu_joules : result.processor_joules) += one.joules;
    (gpu ? result.gpus : result.processors) = true;
  }
  return result;
}

Reading total(const std::vector<RankReading>& ranks) {
  Reading all;
  all.processors = all.gpus = !ranks.empty();
  for (const RankReading& rank : ranks) {
    const Reading& own = rank.reading;
    all.gpus = all.gpus && own.gpus;
    all.gpu_joules += own.gpu_joules;
    if (rank.counts_processors) {
      all.processors = all.processors && own.processors;
      all.processor_joules += own.processor_joules;
    }
    for (const std::string& why : own.absent) {
      const bool others = !rank.counts_processors && why.starts_with("processors:");
      if (!others && std::ranges::find(all.absent, why) == all.absent.end()) all.absent.push_back(why);
    }
    all.counters.insert(all.counters.end(), own.counters.begin(), own.counters.end());
  }
  if (!all.gpus) all.gpu_joules = 0;
  if (!all.processors) all.processor_joules = 0;
  return all;
}

std::string to_text(const RankReading& rank) {
  const Reading& own = rank.reading;
  return nlohmann::json{{"counters", own.counters},
                        {"absent", own.absent},
                        {"processor_joules", own.processor_joules},
                        {"gpu_joules", own.gpu_joules},
                        {"processors", own.processors},
                        {"gpus", own.gpus},
                        {"counts_processors", rank.counts_processors}}
      .dump();
}

RankReading rank_reading_of(const std::string& text) {
  const auto json = nlohmann::json::parse(text);
  RankReading rank;
  rank.counts_processors = json.at("counts_processors");
  rank.reading = {json.at("counters"),   json.at("absent"),     json.at("processor_joules"),
                  json.at("gpu_joules"), json.at("processors"), json.at("gpus")};
  return rank;
}

}  // namespace mulligan::energy
