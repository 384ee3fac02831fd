// Constants of the emulated device: a kernel may read those that its MLG_KERNEL statement names.
// Part of emulation.hpp.
#pragma once

#include <mulligan/cuda_kernel.h>

#include <cstdlib>

#define MLG_CONST_INT(name) static const ::mulligan::emulation::Constant<int> name(mlg_constants, #name);
#define MLG_CONST_FLOAT(name) static const ::mulligan::emulation::Constant<float> name(mlg_constants, #name);
#define MLG_KERNEL(function, ...) \
  static const ::mulligan::emulation::Kernel mlg_kernel_##function(mlg_constants __VA_OPT__(, ) __VA_ARGS__);

namespace mulligan::emulation {

// The constants that a source file declares.
struct ConstantTable {
  static constexpr std::uint32_t kMost = 64;  // a bit each in ConstantSet
  mlg_emulated_constant entries[kMost];
  std::uint32_t count;
};
using ConstantSet = std::uint64_t;  // bit i: entries[i]

// Those that the running kernel names.
inline ConstantSet readable_constants = 0;

template <typename T>
class Constant {
 public:
  Constant(ConstantTable& table, const char* name) : name_(name), place_(table.count) {
    if (table.count == ConstantTable::kMost) std::abort();
    if constexpr (std::is_same_v<T, int>) table.entries[table.count++] = {name, &value_, nullptr};
    if constexpr (std::is_same_v<T, float>) table.entries[table.count++] = {name, nullptr, &value_};
  }
  Constant(const Constant&) = delete;

  operator T() const {
    if ((readable_constants >> place_ & 1) == 0) [[unlikely]]
      fail("reads the constant %s, which its MLG_KERNEL statement does not name", name_);
    return value_;
  }
  std::uint32_t place() const { return place_; }

 private:
  mutable T value_ = 0;  // set by the device
  const char* name_;
  std::uint32_t place_;
};

// A __global__ function's statement of the constants that it reads.
struct Kernel {
  const ConstantTable& table;
  ConstantSet constants;

  template <typename... Types>
  explicit Kernel(const ConstantTable& table, const Constant<Types>&... named)
      : table(table), constants((ConstantSet{0} | ... | (ConstantSet{1} << named.place()))) {}
};

}  // namespace mulligan::emulation

// Each file that includes this has a table of its own.
static ::mulligan::emulation::ConstantTable mlg_constants{};
