// How far the results of PTX lie from those of the same source compiled for the CPU (the emulated device), function
// by function.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "plugins/backends/cuda/device_argument.h"
#include "plugins/backends/cuda/emulated/device_memory.h"
#include "tests/ptx/program.h"

namespace mulligan::ptx {

class Agreement {
 public:
  // The table is written to `file` when the object goes; lines of functions that are there already are joined with it.
  explicit Agreement(std::string file) : file_(std::move(file)) {}
  ~Agreement();
  Agreement(const Agreement&) = delete;
  Agreement& operator=(const Agreement&) = delete;

  // Contents and marks of each argument that may be written.
  struct Memory {
    std::vector<std::vector<char>> bytes;
    std::vector<std::vector<unsigned char>> marks;
  };
  static Memory snapshot(const std::vector<cuda::DeviceArgument>& arguments,
                         const cuda::DeviceMemory& memory);
  static void restore(const Memory& from, const std::vector<cuda::DeviceArgument>& arguments,
                      const cuda::DeviceMemory& memory);

  // `prototype`: the function with its parameters' types, "void f<bf16>(bf16 const*, float*)".
  void compare(const std::string& function, const std::string& prototype, const Program& program,
               const Memory& expected, const std::vector<cuda::DeviceArgument>& arguments,
               const cuda::DeviceMemory& memory);

 private:
  struct Row {
    std::int64_t launches = 0, elements = 0, differing = 0;
    double largest_ulps = 0;      // of numbers of the argument's dtype
    double largest_relative = 0;  // to the largest number of the argument
    // Why results may differ: 0 by nothing; 1: by multiply-adds, which one of the two compilers makes one
    // rounding and the other two; 2: approximate instructions, too.
    int reason = 0;
  };
  void join_file();

  std::string file_;
  std::map<std::string, Row> rows_;
};

}  // namespace mulligan::ptx
