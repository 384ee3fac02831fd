// Barriers and warp operations of the emulated device. Part of emulation.hpp.
#pragma once

#include <mulligan/cuda/emulator.h>

// The defaults make the messages name the line that calls.
#define MLG_CALLER const char *file = __builtin_FILE(), int line = __builtin_LINE()

inline void __syncthreads(MLG_CALLER) {
  ::mulligan::emulation::emulator->barrier(file, line);
}
inline void __syncwarp(unsigned mask = 0xFFFFFFFFu, MLG_CALLER) {
  ::mulligan::emulation::emulator->warp_operation(MLG_WARP_SYNC, mask, 0, 0, file, line);
}

namespace mulligan::emulation {

template <typename T>
T shuffle(unsigned mask, T value, unsigned source, const char* file, int line) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "shuffles move 4 or 8 bytes");
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = emulator->warp_operation(MLG_WARP_SHUFFLE, mask, source, bits, file, line);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

inline unsigned vote(unsigned mask, bool value, const char* file, int line) {
  return static_cast<unsigned>(emulator->warp_operation(MLG_WARP_VOTE, mask, 0, value ? 1 : 0, file, line));
}

}  // namespace mulligan::emulation

// As in CUDA: a source outside of the lane's segment of `width` lanes gives the lane its own value, except
// for __shfl_sync, which wraps around.
template <typename T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32, MLG_CALLER) {
  const unsigned lane = ::mulligan::emulation::emulator->lane;
  const unsigned from = lane / width * width + static_cast<unsigned>(source) % width;
  return ::mulligan::emulation::shuffle(mask, value, from, file, line);
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32, MLG_CALLER) {
  const unsigned lane = ::mulligan::emulation::emulator->lane;
  const unsigned from = lane ^ static_cast<unsigned>(lanes);
  return ::mulligan::emulation::shuffle(mask, value, from / width > lane / width ? lane : from, file, line);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, MLG_CALLER) {
  const unsigned lane = ::mulligan::emulation::emulator->lane;
  const unsigned from = lane % width < delta ? lane : lane - delta;
  return ::mulligan::emulation::shuffle(mask, value, from, file, line);
}
inline unsigned __ballot_sync(unsigned mask, bool value, MLG_CALLER) {
  return ::mulligan::emulation::vote(mask, value, file, line);
}

#undef MLG_CALLER
