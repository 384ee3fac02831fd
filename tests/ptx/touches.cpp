#include "tests/ptx/touches.h"

#include <algorithm>

namespace mulligan::ptx {

std::uint64_t Clock::block_at(std::uint32_t time) const {
  const auto after = std::upper_bound(blocks_began.begin(), blocks_began.end(), time);
  return blocks.at(static_cast<std::size_t>(after - blocks_began.begin()) - 1);
}

std::string Touch::record(bool writes, bool shared, const Clock& clock, Toucher by) {
  const bool sound = shared ? (writes ? quick_write_shared(clock, by) : quick_read_shared(clock, by))
                            : (writes ? quick_write_global(clock, by) : quick_read_global(clock, by));
  if (sound) return {};
  if (shared && !writes && write_time_ < clock.block_began) return "which its block has not written";
  if (!shared && of_another_block(write_time_, clock))
    return "which block " + std::to_string(clock.block_at(write_time_)) + " writes in the same launch";
  if (!shared && writes && of_another_block(first_read_time_, clock))
    return "which block " + std::to_string(clock.block_at(first_read_time_)) + " reads in the same launch";
  if (write_is_ordered(clock, by)) return "which another thread read since the last barrier";
  return "which thread " + std::to_string(write_thread_) + " wrote since the last barrier";
}

}  // namespace mulligan::ptx
