// Who touched a piece of memory last, and when: finds accesses of two threads, one of them a write, that nothing orders.
//
// Two threads of a block are ordered by a barrier between their accesses; two of a warp also by an operation of the
// whole warp (a shuffle or bar.warp.sync of all lanes). Nothing orders two blocks of a launch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mulligan::ptx {

// Time goes on by one at each barrier of a block, each block, and each launch, and never back.
struct Clock {
  std::uint32_t now = 1, block_began = 1, launch_began = 1;
  std::vector<std::uint32_t> blocks_began;  // of this launch, in the order in which they run
  std::vector<std::uint64_t> blocks;        // which these were

  void begin_launch() {
    launch_began = ++now;
    blocks_began.clear();
    blocks.clear();
  }
  void begin_block(std::uint64_t block) {
    block_began = ++now;
    blocks_began.push_back(now);
    blocks.push_back(block);
  }
  std::uint64_t block_at(std::uint32_t time) const;
};

struct Toucher {
  std::uint32_t thread;  // in its block
  std::uint32_t turn;    // operations of the whole warp that its warp has passed

  std::uint32_t warp() const { return thread / 32; }
  std::uint32_t lane() const { return 1u << thread % 32; }
};

class Touch {
 public:
  // Records an access that nothing is wrong with; false: something is, which record() says.
  bool quick_read_shared(const Clock& clock, Toucher by) {
    if (write_time_ < clock.block_began || !write_is_ordered(clock, by)) return false;
    record_read(clock, by);
    return true;
  }
  bool quick_write_shared(const Clock& clock, Toucher by) {
    if (!write_is_ordered(clock, by) || !reads_are_ordered(clock, by)) return false;
    record_write(clock, by);
    return true;
  }
  bool quick_read_global(const Clock& clock, Toucher by) {
    if (of_another_block(write_time_, clock) || !write_is_ordered(clock, by)) return false;
    record_read(clock, by);
    return true;
  }
  bool quick_write_global(const Clock& clock, Toucher by) {
    if (of_another_block(write_time_, clock) || of_another_block(first_read_time_, clock)) return false;
    return quick_write_shared(clock, by);
  }
  // The same; empty, or what is wrong: "which thread 3 wrote since the last barrier". Shared memory must have been
  // written by the block before it is read.
  std::string record(bool writes, bool shared, const Clock& clock, Toucher by);
  bool written_since(std::uint32_t time) const { return write_time_ >= time; }

 private:
  // Whether a block before this one of the launch did it.
  static bool of_another_block(std::uint32_t time, const Clock& clock) {
    return time >= clock.launch_began && time < clock.block_began;
  }
  bool write_is_ordered(const Clock& clock, Toucher by) const {
    return write_time_ != clock.now || write_thread_ == by.thread ||
           (write_thread_ / 32 == by.warp() && write_turn_ != by.turn);
  }
  bool reads_are_ordered(const Clock& clock, Toucher by) const {
    if (read_time_ != clock.now) return true;
    if (several_warps_ || read_warp_ != by.warp()) return false;
    return read_turn_ != by.turn || (read_lanes_ & ~by.lane()) == 0;
  }
  void record_read(const Clock& clock, Toucher by);
  void record_write(const Clock& clock, Toucher by) {
    write_time_ = clock.now;
    write_thread_ = by.thread;
    write_turn_ = by.turn;
  }

  std::uint32_t write_time_ = 0, write_thread_ = 0, write_turn_ = 0;
  std::uint32_t first_read_time_ = 0;  // of this launch
  std::uint32_t read_time_ = 0, read_turn_ = 0, read_lanes_ = 0;
  std::uint16_t read_warp_ = 0;
  bool several_warps_ = false;  // read it at read_time_
};

inline void Touch::record_read(const Clock& clock, Toucher by) {
  if (first_read_time_ < clock.launch_began) first_read_time_ = clock.now;
  if (read_time_ != clock.now) {
    read_time_ = clock.now;
    several_warps_ = false;
    read_warp_ = static_cast<std::uint16_t>(by.warp());
    read_turn_ = by.turn;
    read_lanes_ = by.lane();
  } else if (read_warp_ != by.warp()) {
    several_warps_ = true;
  } else if (read_turn_ == by.turn) {
    read_lanes_ |= by.lane();
  } else {
    read_turn_ = by.turn;
    read_lanes_ = by.lane();
  }
}

}  // namespace mulligan::ptx
