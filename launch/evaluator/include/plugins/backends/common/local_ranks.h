// Takes the place of plugins/backends/common/local_ranks.h in an evaluation, whose ranks.cpp starts the ranks.
#pragma once

#include <algorithm>
#include <cstdlib>

namespace mulligan::backends {

inline int environment_number(int otherwise, const char* name) {
  const char* text = std::getenv(name);
  return text ? std::atoi(text) : otherwise;
}

inline int local_ranks() {
  return std::max(1, environment_number(1, "LOCAL_WORLD_SIZE"));
}

inline int device_of_rank(int wanted, int visible) {
  if (wanted >= 0) return wanted;
  return visible == 1 ? 0 : environment_number(0, "LOCAL_RANK");
}

}  // namespace mulligan::backends
