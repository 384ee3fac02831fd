// From a function of one lane's values to a Form: add(forms, "add.f32", [](float a, float b) { return a + b; }).
#pragma once

#include <bit>
#include <cstring>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "tests/ptx/forms.h"

namespace mulligan::ptx {

using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s16 = std::int16_t;
using s32 = std::int32_t;
using s64 = std::int64_t;

// body.operator()<T>() for each of the types.
template <typename... T, typename Body>
void each(Body body) {
  (body.template operator()<T>(), ...);
}

// "s32" of a 32-bit integer with a sign.
template <typename T>
std::string type_name() {
  const char* kind = std::is_floating_point_v<T> ? "f" : std::is_signed_v<T> ? "s" : "u";
  return kind + std::to_string(8 * sizeof(T));
}

// A result that is not a number has the bits 0x7FFFFFFF, as f32 instructions of a GPU make it.
inline float tidy(float value) {
  return value != value ? std::bit_cast<float>(0x7FFFFFFFu) : value;
}

template <typename T>
struct LaneValues {
  const T* values;
  LaneValues(const std::byte* registers, const Instruction& instruction, int operand)
      : values(reinterpret_cast<const T*>(registers + instruction.at[operand])) {}
  T operator[](unsigned lane) const { return values[lane]; }
};
template <>
struct LaneValues<bool> {
  std::uint32_t bits;
  LaneValues(const std::byte* registers, const Instruction& instruction, int operand) {
    std::memcpy(&bits, registers + instruction.at[operand], sizeof bits);
    if (instruction.negated >> operand & 1) bits = ~bits;
  }
  bool operator[](unsigned lane) const { return bits >> lane & 1; }
};

template <typename T>
void write_lanes(std::byte* registers, std::uint32_t at, const T* values, std::uint32_t mask) {
  T* out = reinterpret_cast<T*>(registers + at);
  if (mask == 0xFFFFFFFF) {
    std::memcpy(out, values, kLanes * sizeof(T));
  } else {
    for (unsigned lane = 0; lane < kLanes; ++lane) out[lane] = mask >> lane & 1 ? values[lane] : out[lane];
  }
}
inline void write_lanes(std::byte* registers, std::uint32_t at, const bool* values, std::uint32_t mask) {
  std::uint32_t bits = 0, old = 0;
  for (unsigned lane = 0; lane < kLanes; lane += 8) {  // eight bytes of 0 and 1 become eight bits
    std::uint64_t eight = 0;
    std::memcpy(&eight, values + lane, sizeof eight);
    bits |= static_cast<std::uint32_t>(eight * 0x0102040810204080u >> 56) << lane;
  }
  std::memcpy(&old, registers + at, sizeof old);
  bits = (bits & mask) | (old & ~mask);
  std::memcpy(registers + at, &bits, sizeof bits);
}

template <typename F, typename Result, typename... Arguments>
struct EachLane {
  static void compute(std::byte* registers, const Instruction& instruction, std::uint32_t mask) {
    run(registers, instruction, mask, std::index_sequence_for<Arguments...>());
  }
  template <std::size_t... N>
  static void run(std::byte* registers, const Instruction& instruction, std::uint32_t mask,
                  std::index_sequence<N...>) {
    const std::tuple<LaneValues<Arguments>...> in{
        LaneValues<Arguments>(registers, instruction, static_cast<int>(N) + 1)...};
    Result out[kLanes];
    for (unsigned lane = 0; lane < kLanes; ++lane) out[lane] = F{}(std::get<N>(in)[lane]...);
    write_lanes(registers, instruction.at[0], out, mask);
  }
};

template <typename T>
constexpr Operand operand_of() {
  if constexpr (std::is_same_v<T, bool>) {
    return Operand::predicate;
  } else {
    static_assert(sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8);
    return sizeof(T) == 2 ? Operand::bits16 : sizeof(T) == 4 ? Operand::bits32 : Operand::bits64;
  }
}

template <typename F, typename Result, typename... Arguments>
Form form_of(Result (F::*)(Arguments...) const) {
  return {EachLane<F, Result, Arguments...>::compute,
          static_cast<int>(sizeof...(Arguments)) + 1,
          {operand_of<Result>(), operand_of<Arguments>()...}};
}

template <typename F>
void add(Forms& forms, const std::string& name, F) {
  forms.emplace(name, form_of<F>(&F::operator()));
}

}  // namespace mulligan::ptx
