#include "tests/ptx/touches.h"

#include <algorithm>

namespace mulligan::ptx {

std::uint64_t Clock::block_at(std::uint32_t time) const {
  const auto after = std::upper_bound(blocks_began.begin(), blocks_began.end(), time);
  return blocks.at(static_cast<std::size_t>(after - blocks_began.begin()) - 1);
}

std::string Touch::unordered_write() const {
  return "which thread " + std::to_string(write_thread_) + " wrote since the last barrier";
}

std::string Touch::read_shared(const Clock& clock, Toucher by) {
  if (write_time_ < clock.block_began) return "which its block has not written";
  if (!write_is_ordered(clock, by)) return unordered_write();
  record_read(clock, by);
  return {};
}

std::string Touch::write_shared(const Clock& clock, Toucher by) {
  if (!write_is_ordered(clock, by)) return unordered_write();
  if (!reads_are_ordered(clock, by)) return "which another thread read since the last barrier";
  record_write(clock, by);
  return {};
}

std::string Touch::read_global(const Clock& clock, Toucher by) {
  if (of_another_block(write_time_, clock))
    return "which block " + std::to_string(clock.block_at(write_time_)) + " writes in the same launch";
  if (!write_is_ordered(clock, by)) return unordered_write();
  record_read(clock, by);
  return {};
}

std::string Touch::write_global(const Clock& clock, Toucher by) {
  if (of_another_block(write_time_, clock))
    return "which block " + std::to_string(clock.block_at(write_time_)) + " writes in the same launch";
  if (of_another_block(first_read_time_, clock))
    return "which block " + std::to_string(clock.block_at(first_read_time_)) + " reads in the same launch";
  if (!write_is_ordered(clock, by)) return unordered_write();
  if (!reads_are_ordered(clock, by)) return "which another thread read since the last barrier";
  record_write(clock, by);
  return {};
}

}  // namespace mulligan::ptx
