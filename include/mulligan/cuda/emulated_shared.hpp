// Shared memory of the emulated device. Each element remembers its last writer and reader, and the time. Two accesses by different
// threads are reported if one is a write and no barrier lies between. So is a read of an element that this block has not
// written. Part of emulation.hpp.
//
// Two threads are ordered when a __syncthreads() lies between their accesses, or, within a warp, an
// operation of the whole warp (a shuffle or __syncwarp with all 32 lanes in the mask). Operations of parts
// of a warp do not count.
#pragma once

#include <mulligan/cuda/emulator.h>

namespace mulligan::emulation {

// When and by whom an element was touched last.
struct Touch {
  std::uint64_t block_serial;
  std::uint32_t block_epoch, warp_epoch, thread;
  bool several, several_warps;  // in the same epochs also by other threads, by threads of other warps

  bool in_this_block() const { return block_serial == emulator->block_serial; }
  bool in_this_epoch() const { return in_this_block() && block_epoch == emulator->block_epoch; }
  // Whether the running thread may rely on that access lying before its own.
  bool is_ordered() const {
    if (!in_this_epoch()) return true;
    if (several_warps || thread / 32 != emulator->warp) return false;
    return warp_epoch != emulator->warp_epoch || (thread == emulator->thread && !several);
  }
  void record() {
    const bool same = in_this_epoch();
    if (same && several_warps) return;  // nothing more to learn
    const bool other_warp = same && (several_warps || thread / 32 != emulator->warp);
    const bool other = same && warp_epoch == emulator->warp_epoch && (several || thread != emulator->thread);
    *this = {emulator->block_serial,
             emulator->block_epoch,
             emulator->warp_epoch,
             emulator->thread,
             other,
             other_warp};
  }
};

struct SharedMarks {
  Touch write, read;

  void on_read(long long index) {
    const bool before_barrier =
        write.block_serial == emulator->block_serial && write.block_epoch != emulator->block_epoch;
    if (!before_barrier) check_read(index);
    read.record();
  }
  void check_read(long long index) const {
    if (!write.in_this_block()) {
      fail("reads element %lld of shared memory, which its block has not written", index);
    }
    if (!write.is_ordered()) {
      fail("reads element %lld of shared memory, which thread %u wrote since the last barrier", index,
           write.thread);
    }
  }
  void on_write(long long index) {
    if (!write.is_ordered()) {
      fail("writes element %lld of shared memory, which thread %u wrote since the last barrier", index,
           write.thread);
    }
    if (!read.is_ordered()) {
      fail("writes element %lld of shared memory, which thread %u read since the last barrier", index,
           read.thread);
    }
    write.record();
  }
};

template <typename T>
class SharedElement {
 public:
  SharedElement(T& value, SharedMarks& marks, long long index)
      : value_(value), marks_(marks), index_(index) {}
  operator T() const {
    marks_.on_read(index_);
    return value_;
  }
  const SharedElement& operator=(T value) const {
    marks_.on_write(index_);
    value_ = value;
    return *this;
  }
  const SharedElement& operator=(const SharedElement& other) const { return *this = static_cast<T>(other); }
  const SharedElement& operator+=(T value) const { return *this = static_cast<T>(*this) + value; }

 private:
  T& value_;
  SharedMarks& marks_;
  long long index_;
};

}  // namespace mulligan::emulation

template <typename T, int N>
struct shared_array {
  T data[N];
  ::mulligan::emulation::SharedMarks marks[N];

  ::mulligan::emulation::SharedElement<T> operator[](long long index) {
    if (index < 0 || index >= N)
      ::mulligan::emulation::fail("touches element %lld of a shared array of %d", index, N);
    return {data[index], marks[index], index};
  }
};
