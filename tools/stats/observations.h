// The values that statistics are made of: one figure of each run, with its condition and its seed.
#pragma once

#include <string>
#include <vector>

namespace mulligan::stats {

struct Observation {
  std::string run;                  // for people: a directory
  std::vector<std::string> levels;  // by factor
  std::string seed;                 // runs of one seed in several conditions are pairs; "" = no seed
  double value = 0;
  // What the value was taken over, in words ("validation: 62021846 tokens", "steps 0 to 500"). Values over
  // different windows cannot be compared.
  std::string window;
};

struct Observations {
  std::string metric;                // with its unit; lower is better
  std::vector<std::string> factors;  // names of the levels
  std::vector<Observation> values;
};

// The levels of a value as one label: "A", or with several factors "precision=fp32, math=0.25".
std::string condition_of(const Observations& all, const Observation& value);

// Throws data_error naming two runs whose windows differ.
void require_one_window(const Observations& all);

// A CSV file (RFC 4180, UTF-8): columns run, seed, window, the factors and the metric.
std::string observations_csv(const Observations& all);

}  // namespace mulligan::stats
