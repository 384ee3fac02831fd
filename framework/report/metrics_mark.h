// MetricsMark: how much of metrics.jsonl a checkpoint vouches for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace mulligan {

// The records of steps, skipped updates, looks at attention and validations on the way, in order: no later
// process writes one of them again, so a run that goes on finds them as they were.
struct MetricsMark {
  std::int64_t records = 0;
  std::string sha256;  // of the digest before and the line, record by record; "" of none
  bool operator==(const MetricsMark&) const = default;

  void add(std::string_view line);
};

}  // namespace mulligan
