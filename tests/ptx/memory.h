// What the threads of one launch may touch: its arguments, the module's variables, and the block's shared memory.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "tests/ptx/program.h"
#include "tests/ptx/touches.h"

namespace mulligan::ptx {

// Memory that an argument gives. `known`: 1 for each byte that was ever written; null: all were.
struct Region {
  std::string name;
  char* begin;
  std::size_t bytes;
  unsigned char* known;
  bool readable, writable;

  const char* end() const { return begin + bytes; }
};

class LaunchMemory {
 public:
  // `touches` is kept between launches, for its memory alone.
  LaunchMemory(const Program& program, std::vector<Region> regions, std::uint32_t dynamic_shared_bytes,
               std::vector<Touch>& touches, const Clock& clock);

  // Does an access that nothing is wrong with; false: something may be, and load() or store() says what.
  bool quick_load(const Instruction& instruction, std::uint64_t address, char* to, Toucher by,
                  std::uint32_t hint);
  bool quick_store(const Instruction& instruction, std::uint64_t address, const char* from, Toucher by,
                   std::uint32_t hint);
  // Copies `bytes` bytes, or says what is wrong: "reads 4 bytes at byte 64 of x, which has 64 bytes". `hint` is kept
  // for each instruction.
  std::string load(const Instruction& instruction, std::uint64_t address, char* to, Toucher by,
                   std::uint32_t& hint);
  std::string store(const Instruction& instruction, std::uint64_t address, const char* from, Toucher by,
                    std::uint32_t& hint);

 private:
  // Memory that the launch may write, as arguments lay it out: two that overlap make one.
  struct Extent {
    const char* begin;
    const char* end;
    Touch* touches;
  };
  struct Shared {
    std::string name;
    std::uint64_t begin, end;
    std::vector<char> memory;
    std::vector<Touch> touches;
  };

  Region* region_of(std::uint64_t address, std::size_t bytes, bool writes, std::uint32_t& hint);
  std::string no_region(std::uint64_t address, std::size_t bytes, bool writes) const;
  Shared* shared_of(std::uint64_t address, std::size_t bytes, std::uint32_t& hint);
  std::string no_shared(std::uint64_t address, std::size_t bytes, bool writes) const;
  Touch* touches_of(const char* address);

  std::vector<Region> regions_;
  std::vector<char> is_written_;  // by region: memory of it may be written in this launch
  std::vector<Extent> extents_;
  std::vector<Shared> shared_;
  std::uint32_t shared_unit_, global_unit_;
  unsigned shared_shift_;  // 2 to the power of it is shared_unit_
  const Clock& clock_;
};

// In accesses of the sizes that exist.
inline void copy_bytes(char* to, const char* from, std::size_t bytes) {
  switch (bytes) {
    case 2:
      std::memcpy(to, from, 2);
      break;
    case 4:
      std::memcpy(to, from, 4);
      break;
    case 8:
      std::memcpy(to, from, 8);
      break;
    case 16:
      std::memcpy(to, from, 16);
      break;
    default:
      std::memcpy(to, from, bytes);
  }
}

// `bytes`: 1 to 16.
inline bool all_known(const unsigned char* known, std::size_t bytes) {
  static constexpr unsigned char ones[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  return bytes == 4    ? std::memcmp(known, ones, 4) == 0
         : bytes == 2  ? std::memcmp(known, ones, 2) == 0
         : bytes == 16 ? std::memcmp(known, ones, 16) == 0
                       : std::memcmp(known, ones, bytes) == 0;
}

inline bool LaunchMemory::quick_load(const Instruction& instruction, std::uint64_t address, char* to,
                                     Toucher by, std::uint32_t hint) {
  const std::size_t bytes = std::size_t{instruction.element_bytes} * instruction.count;
  if ((address & (bytes - 1)) != 0) return false;
  if (instruction.space == Instruction::Space::shared) {
    if (hint >= shared_.size()) return false;
    Shared& shared = shared_[hint];
    if (address < shared.begin || address + bytes > shared.end) return false;
    const std::size_t offset = address - shared.begin;
    for (std::size_t i = 0; i < bytes; i += shared_unit_) {
      if (!shared.touches[(offset + i) >> shared_shift_].quick_read_shared(clock_, by)) return false;
    }
    copy_bytes(to, shared.memory.data() + offset, bytes);
    return true;
  }
  if (hint >= regions_.size() || is_written_[hint]) return false;
  const Region& region = regions_[hint];
  const std::uint64_t offset = address - reinterpret_cast<std::uint64_t>(region.begin);
  if (offset >= region.bytes || bytes > region.bytes - offset || !region.readable) return false;
  if (region.known && !all_known(region.known + offset, bytes)) return false;
  copy_bytes(to, region.begin + offset, bytes);
  return true;
}

inline bool LaunchMemory::quick_store(const Instruction& instruction, std::uint64_t address, const char* from,
                                      Toucher by, std::uint32_t hint) {
  const std::size_t bytes = std::size_t{instruction.element_bytes} * instruction.count;
  if (instruction.space != Instruction::Space::shared || hint >= shared_.size() ||
      (address & (bytes - 1)) != 0)
    return false;
  Shared& shared = shared_[hint];
  if (address < shared.begin || address + bytes > shared.end || bytes != shared_unit_) return false;
  const std::size_t offset = address - shared.begin;
  if (!shared.touches[offset >> shared_shift_].quick_write_shared(clock_, by)) return false;
  copy_bytes(shared.memory.data() + offset, from, bytes);
  return true;
}

}  // namespace mulligan::ptx
