// Runs the blocks of one launch of a PTX function, one after another.
//
// The threads of a warp that are at the same instruction run it together. If there are several such groups, the one with the
// earliest instruction runs first, so that groups meet where branches join. An operation of a warp waits until all lanes of its
// mask are at it, and a barrier until all threads of the block are. If they wait for threads that cannot come, that is
// reported.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/ptx/memory.h"
#include "tests/ptx/program.h"

namespace mulligan::ptx {

// In which order blocks and warps run. A function without races gives the same bits in each.
enum class Order { forward, reverse, interleaved };

struct LaunchShape {
  std::uint32_t blocks[3], threads[3];
};

class Execution {
 public:
  // `parameters`: as the function's parameters lie, one after another.
  Execution(const Program& program, const LaunchShape& shape, std::vector<char> parameters,
            LaunchMemory& memory, Clock& clock, Order order);

  // Throws std::runtime_error with function, line and text, thread and block.
  void run();

 private:
  enum class State : std::uint8_t { ready, waits };
  struct Group {
    std::uint32_t at;    // index of an instruction
    std::uint32_t mask;  // lanes
    State state;
  };
  struct Warp {
    std::byte* registers;
    std::uint32_t lanes, ended;
    std::uint32_t turn;
    std::vector<Group> groups;
  };
  enum class Stop { at_barrier, ended };

  void run_block(std::uint64_t block);
  Stop run_warp(unsigned warp);
  // Runs the group until it ends, splits, waits, or comes to where another one is.
  void run_group(unsigned warp, Group group);
  Stop stop_of(unsigned warp) const;
  void fill_specials(unsigned warp, std::uint64_t block);

  // A load or store.
  void move_elements(unsigned warp, const Instruction& instruction, std::uint32_t mask);
  // False: lanes are missing that may still come.
  bool warp_operation(unsigned warp, const Instruction& instruction, std::uint32_t mask);
  bool may_begin(unsigned warp, const Instruction& instruction, std::uint32_t mask,
                 const std::uint32_t* members) const;
  bool whole_butterfly(unsigned warp, const Instruction& instruction, std::uint32_t mask);
  void shuffle(unsigned warp, const Instruction& instruction, std::uint32_t lane, std::uint32_t members,
               const std::uint32_t* values, std::uint32_t* results, std::uint32_t& inside) const;

  [[noreturn]] void fail(const Instruction& instruction, unsigned warp, std::uint32_t lane,
                         const std::string& what) const;
  [[noreturn]] void fail_at(const Instruction& instruction, const std::string& what) const;
  std::string thread_name(std::uint64_t thread) const;
  std::string whereabouts(unsigned warp, std::uint32_t lane) const;

  const Program& program_;
  LaunchShape shape_;
  std::vector<char> parameters_;
  LaunchMemory& memory_;
  Clock& clock_;
  Order order_;
  std::uint64_t block_ = 0;
  std::uint32_t threads_;
  std::vector<std::byte> file_;  // the warps' registers
  std::vector<Warp> warps_;
  std::vector<std::uint32_t> hints_;  // by instruction
};

}  // namespace mulligan::ptx
