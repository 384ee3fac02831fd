// What the threads of one launch may touch: its arguments, the module's variables, and the block's shared memory.
#pragma once

#include <cstdint>
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

// An element as it lies in memory into lane `lane` of the register at `at`, which may be wider.
void write_register(std::byte* registers, const Instruction& instruction, std::uint32_t at, unsigned lane,
                    const char* element);

class LaunchMemory {
 public:
  // `touches` is kept between launches, for its memory alone.
  LaunchMemory(const Program& program, std::vector<Region> regions, std::uint32_t dynamic_shared_bytes,
               std::vector<Touch>& touches, const Clock& clock);

  // A load or store of a whole warp: of lane i, at address at[i], to or from its registers. False: something may be
  // wrong with it, and move_lane(), lane by lane, says what. `first` is lane 0; `hint` is kept for each instruction.
  bool move_warp(const Instruction& instruction, const std::uint64_t* at, std::uint32_t mask,
                 std::byte* registers, Toucher first, std::uint32_t& hint);
  // That of one lane, to or from `elements`, or what is wrong: "reads 4 bytes at byte 64 of x, which has 64 bytes".
  std::string move_lane(const Instruction& instruction, std::uint64_t address, char* elements, Toucher by,
                        std::uint32_t& hint);

 private:
  // Memory that the launch may write, as arguments lay it out: two that overlap make one.
  struct Extent {
    const char* begin;
    const char* end;
    Touch* touches;
  };
  // What is known of a region's memory for the whole launch.
  struct Facts {
    bool written;        // memory of it may be written
    bool plain;          // nothing can be wrong with reading it: it is readable, known and not written
    Touch* touches;      // of its first byte, where one extent holds all of it; else null
    std::size_t begins;  // its first byte's distance from the first byte of touches[0]
  };
  struct Shared {
    std::string name;
    std::uint64_t begin, end;
    std::vector<char> memory;
    std::vector<Touch> touches;
  };

  template <bool kLoads>
  bool move_whole(const Instruction& instruction, const std::uint64_t* at, std::uint32_t mask,
                  std::byte* registers, Toucher first, std::uint32_t& hint);
  // Where an access of shared memory lies; null: `wrong` says why it may not be made.
  char* shared_place(const Instruction& instruction, std::uint64_t address, bool writes, Toucher by,
                     std::uint32_t& hint, std::string& wrong);
  Region* region_of(std::uint64_t address, std::size_t bytes, bool writes, std::uint32_t& hint);
  std::string no_region(std::uint64_t address, std::size_t bytes, bool writes) const;
  Shared* shared_of(std::uint64_t address, std::size_t bytes, std::uint32_t& hint);
  std::string no_shared(std::uint64_t address, std::size_t bytes, bool writes) const;
  Touch* touches_of(const char* address);

  std::vector<Region> regions_;
  std::vector<Facts> facts_;  // by region
  std::vector<Extent> extents_;
  std::vector<Shared> shared_;
  std::uint32_t shared_unit_, global_unit_;
  unsigned shared_shift_, global_shift_;  // 2 to the power of it is the unit
  const Clock& clock_;
};

}  // namespace mulligan::ptx
