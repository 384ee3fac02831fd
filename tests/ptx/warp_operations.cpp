// What the lanes of a warp do with memory and with each other.
#include <array>
#include <bit>
#include <cstring>

#include "tests/ptx/execution.h"

namespace mulligan::ptx {
namespace {

// Of each lane, with the instruction's offset.
std::array<std::uint64_t, kLanes> addresses_of(const std::byte* registers, const Instruction& instruction) {
  std::array<std::uint64_t, kLanes> at;
  std::memcpy(at.data(), registers + instruction.at[instruction.count], sizeof at);
  for (std::uint64_t& one : at) one += static_cast<std::uint64_t>(instruction.offset);
  return at;
}

}  // namespace

void Execution::move_elements(unsigned warp, const Instruction& instruction, std::uint32_t mask) {
  std::byte* registers = warps_[warp].registers;
  const unsigned bytes = instruction.element_bytes, wide = instruction.register_bytes;
  const bool loads = instruction.kind == Instruction::Kind::load;
  const auto put = [&](unsigned lane, const char* elements) {
    for (unsigned i = 0; i < instruction.count; ++i)
      write_register(registers, instruction, instruction.at[i], lane, elements + i * bytes);
  };
  if (instruction.space == Instruction::Space::parameter) {  // which is only loaded from
    for (std::uint32_t left = mask; left; left &= left - 1)
      put(static_cast<unsigned>(std::countr_zero(left)), parameters_.data() + instruction.offset);
    return;
  }
  const auto at = addresses_of(registers, instruction);
  std::uint32_t& hint = hints_[static_cast<std::size_t>(&instruction - program_.code.data())];
  const Toucher first{warp * kLanes, warps_[warp].turn};
  if (memory_.move_warp(instruction, at.data(), mask, registers, first, hint)) return;
  char elements[64];
  for (std::uint32_t left = mask; left; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    for (unsigned i = 0; !loads && i < instruction.count; ++i)
      std::memcpy(elements + i * bytes, registers + instruction.at[i] + lane * wide, bytes);
    const std::string wrong =
        memory_.move_lane(instruction, at[lane], elements, {first.thread + lane, first.turn}, hint);
    if (!wrong.empty()) fail(instruction, warp, lane, wrong);
    if (loads) put(lane, elements);
  }
}

// shfl.sync: the lane to read follows from the mode; one beyond the bounds is the lane itself.
void Execution::shuffle(unsigned warp, const Instruction& instruction, std::uint32_t lane,
                        std::uint32_t members, const std::uint32_t* values, std::uint32_t* results,
                        std::uint32_t& inside) const {
  const std::byte* registers = warps_[warp].registers;
  std::uint32_t by = 0, bounds = 0;
  std::memcpy(&by, registers + instruction.at[3] + lane * 4, sizeof by);
  std::memcpy(&bounds, registers + instruction.at[4] + lane * 4, sizeof bounds);
  by &= 31;
  const std::uint32_t segment = bounds >> 8 & 31, clamp = bounds & 31;
  const std::uint32_t last = (lane & segment) | (clamp & ~segment), first = lane & segment;
  std::int64_t from = 0;
  bool in_bounds = false;
  switch (instruction.shuffle) {
    case Instruction::Shuffle::up:
      from = std::int64_t{lane} - by;
      in_bounds = from >= last;
      break;
    case Instruction::Shuffle::down:
      from = std::int64_t{lane} + by;
      in_bounds = from <= last;
      break;
    case Instruction::Shuffle::butterfly:
      from = lane ^ by;
      in_bounds = from <= last;
      break;
    case Instruction::Shuffle::index:
      from = first | (by & ~segment);
      in_bounds = from <= last;
      break;
  }
  if (!in_bounds) from = lane;
  if (!(members >> from & 1))
    fail(instruction, warp, lane,
         "shuffles from lane " + std::to_string(from) + ", which takes no part in it");
  results[lane] = values[from];
  inside |= std::uint32_t{in_bounds} << lane;
}

// A butterfly of a whole warp within its 32 lanes, as sums over warps are; false: it is something else.
bool Execution::whole_butterfly(unsigned warp, const Instruction& instruction, std::uint32_t mask) {
  std::byte* registers = warps_[warp].registers;
  if (instruction.shuffle != Instruction::Shuffle::butterfly || mask != 0xFFFFFFFF) return false;
  const auto words = [&](int operand) {
    return reinterpret_cast<const std::uint32_t*>(registers + instruction.at[operand]);
  };
  const std::uint32_t *values = words(2), *by = words(3), *bounds = words(4), *members = words(5);
  bool plain = true;
  for (unsigned lane = 0; lane < kLanes; ++lane)
    plain = plain && by[lane] < kLanes && bounds[lane] == 31 && members[lane] == 0xFFFFFFFF;
  if (!plain) return false;
  std::uint32_t results[kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane) results[lane] = values[lane ^ by[lane]];
  std::memcpy(registers + instruction.at[0], results, sizeof results);
  if (instruction.at[1] != Instruction::kNone) std::memcpy(registers + instruction.at[1], &mask, sizeof mask);
  ++warps_[warp].turn;
  return true;
}

// Whether all lanes have come that those of `mask` name. Fails where they name what they may not.
bool Execution::may_begin(unsigned warp, const Instruction& instruction, std::uint32_t mask,
                          const std::uint32_t* members) const {
  const std::uint32_t lanes = warps_[warp].lanes;
  bool all_here = true;
  for (std::uint32_t left = mask; left; left &= left - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(left));
    if (!(members[lane] >> lane & 1)) fail(instruction, warp, lane, "names a mask that misses its caller");
    if (members[lane] & ~lanes) fail(instruction, warp, lane, "names lanes that its block does not have");
    all_here = all_here && (members[lane] & ~mask) == 0;
  }
  for (std::uint32_t left = all_here ? mask : 0; left; left &= left - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(left));
    for (std::uint32_t others = members[lane]; others; others &= others - 1) {
      if (members[std::countr_zero(others)] != members[lane])
        fail(instruction, warp, lane,
             "and lane " + std::to_string(std::countr_zero(others)) + " disagree about the mask");
    }
  }
  return all_here;
}

bool Execution::warp_operation(unsigned warp, const Instruction& instruction, std::uint32_t mask) {
  if (instruction.kind == Instruction::Kind::shuffle && whole_butterfly(warp, instruction, mask)) return true;
  Warp& own = warps_[warp];
  std::uint32_t members[kLanes], values[kLanes] = {}, results[kLanes] = {}, ballot = 0, inside = 0;
  std::memcpy(members, own.registers + instruction.at[5], sizeof members);
  const bool votes = instruction.kind == Instruction::Kind::vote;
  if (instruction.kind == Instruction::Kind::shuffle)
    std::memcpy(values, own.registers + instruction.at[2], sizeof values);
  if (votes) {
    std::memcpy(&ballot, own.registers + instruction.at[1], sizeof ballot);
    if (instruction.negated) ballot = ~ballot;
  }
  const auto each = [&](auto&& body) {
    for (std::uint32_t left = mask; left; left &= left - 1)
      body(static_cast<unsigned>(std::countr_zero(left)));
  };
  // Lanes that the block does not have may stand in a mask of all ones.
  for (std::uint32_t& one : members) one = one == 0xFFFFFFFF ? own.lanes : one;
  bool whole = mask == own.lanes;  // all lanes of the warp, and all name them all, as nearly always
  each([&](unsigned lane) { whole = whole && members[lane] == own.lanes; });
  if (!whole && !may_begin(warp, instruction, mask, members)) return false;
  each([&](unsigned lane) {
    if (instruction.kind == Instruction::Kind::shuffle) {
      shuffle(warp, instruction, lane, members[lane], values, results, inside);
    } else if (votes) {
      results[lane] = ballot & members[lane];
    }
  });
  if (instruction.kind != Instruction::Kind::sync) {
    each([&](unsigned lane) {
      std::memcpy(own.registers + instruction.at[0] + lane * 4, &results[lane], sizeof results[lane]);
    });
  }
  if (instruction.kind == Instruction::Kind::shuffle && instruction.at[1] != Instruction::kNone) {
    std::uint32_t old = 0;
    std::memcpy(&old, own.registers + instruction.at[1], sizeof old);
    old = (old & ~mask) | (inside & mask);
    std::memcpy(own.registers + instruction.at[1], &old, sizeof old);
  }
  if (whole) ++own.turn;
  return true;
}

}  // namespace mulligan::ptx
