#include "tests/ptx/execution.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>

namespace mulligan::ptx {
namespace {

constexpr std::size_t kLine = 64;

template <typename T>
T* lanes_at(std::byte* registers, std::uint32_t at) {
  return reinterpret_cast<T*>(registers + at);
}
std::uint32_t word_at(const std::byte* registers, std::uint32_t at) {
  std::uint32_t word = 0;
  std::memcpy(&word, registers + at, sizeof word);
  return word;
}
void fill_lanes(std::byte* registers, const Program::Constant& constant) {
  if (constant.bytes == 0) {
    const std::uint32_t bits = constant.value ? 0xFFFFFFFF : 0;
    std::memcpy(registers + constant.at, &bits, sizeof bits);
  }
  for (unsigned lane = 0; lane < kLanes; ++lane)
    std::memcpy(registers + constant.at + lane * constant.bytes, &constant.value, constant.bytes);
}

std::string coordinates(std::uint64_t linear, const std::uint32_t extent[3]) {
  return "(" + std::to_string(linear % extent[0]) + ", " + std::to_string(linear / extent[0] % extent[1]) +
         ", " + std::to_string(linear / extent[0] / extent[1]) + ")";
}

}  // namespace

Execution::Execution(const Program& program, const LaunchShape& shape, std::vector<char> parameters,
                     LaunchMemory& memory, Clock& clock, Order order)
    : program_(program),
      shape_(shape),
      parameters_(std::move(parameters)),
      memory_(memory),
      clock_(clock),
      order_(order),
      threads_(shape.threads[0] * shape.threads[1] * shape.threads[2]),
      hints_(program.code.size()) {
  if (threads_ == 0 || threads_ > program.most_threads) {
    throw std::runtime_error("PTX of " + program.name + ": a launch of " + std::to_string(threads_) +
                             " threads a block, of which it was compiled for " +
                             std::to_string(program.most_threads));
  }
  const std::size_t bytes = (program.register_bytes + kLine - 1) / kLine * kLine;
  warps_.resize((threads_ + kLanes - 1) / kLanes);
  // Registers that nothing has written hold what no result should depend on.
  file_.assign(bytes * warps_.size() + kLine, std::byte{0xCD});
  auto* next = file_.data() + kLine - reinterpret_cast<std::uintptr_t>(file_.data()) % kLine;
  for (Warp& warp : warps_) {
    warp.registers = next;
    next += bytes;
    for (const Program::Constant& constant : program.constants) fill_lanes(warp.registers, constant);
    const auto first = static_cast<std::uint32_t>(&warp - warps_.data()) * kLanes;
    const std::uint32_t count = std::min(kLanes, threads_ - first);
    warp.lanes = count == kLanes ? 0xFFFFFFFF : (1u << count) - 1;
  }
}

void Execution::run() {
  const std::uint64_t blocks = std::uint64_t{shape_.blocks[0]} * shape_.blocks[1] * shape_.blocks[2];
  clock_.begin_launch();
  for (std::uint64_t i = 0; i < blocks; ++i) {
    const std::uint64_t half = (blocks + 1) / 2;  // interleaved: 0, half, 1, half + 1, ...
    block_ = order_ == Order::forward ? i : order_ == Order::reverse ? blocks - 1 - i : i / 2 + i % 2 * half;
    run_block(block_);
  }
}

void Execution::fill_specials(unsigned warp, std::uint64_t block) {
  const std::uint64_t at_block[3] = {block % shape_.blocks[0], block / shape_.blocks[0] % shape_.blocks[1],
                                     block / shape_.blocks[0] / shape_.blocks[1]};
  for (const Program::SpecialRegister& special : program_.specials) {
    auto* values = lanes_at<std::uint32_t>(warps_[warp].registers, special.at);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const std::uint32_t thread = warp * kLanes + lane;
      const std::uint32_t at_thread[3] = {thread % shape_.threads[0],
                                          thread / shape_.threads[0] % shape_.threads[1],
                                          thread / shape_.threads[0] / shape_.threads[1]};
      const auto which = static_cast<unsigned>(special.which), axis = which % 3;
      values[lane] = special.which == Special::laneid ? lane
                     : which < 3                      ? at_thread[axis]
                     : which < 6                      ? shape_.threads[axis]
                     : which < 9                      ? static_cast<std::uint32_t>(at_block[axis])
                                                      : shape_.blocks[axis];
    }
  }
}

void Execution::run_block(std::uint64_t block) {
  clock_.begin_block(block);
  for (unsigned warp = 0; warp < warps_.size(); ++warp) {
    fill_specials(warp, block);
    warps_[warp].ended = warps_[warp].turn = 0;
    warps_[warp].groups.assign(1, Group{0, warps_[warp].lanes, State::ready});
  }
  for (bool waits = true; waits;) {
    unsigned at_barrier = 0;
    for (unsigned i = 0; i < warps_.size(); ++i) {
      const auto last = static_cast<unsigned>(warps_.size()) - 1;
      // Interleaved: the odd warps first.
      const unsigned odd = static_cast<unsigned>(warps_.size()) / 2;
      const unsigned warp = order_ == Order::forward   ? i
                            : order_ == Order::reverse ? last - i
                            : i < odd                  ? 2 * i + 1
                                                       : 2 * (i - odd);
      at_barrier += run_warp(warp) == Stop::at_barrier;
    }
    waits = at_barrier > 0;
    if (!waits) break;
    const auto first = std::ranges::find_if(warps_, [](const Warp& warp) { return !warp.groups.empty(); });
    const std::uint32_t where = first->groups[0].at;
    for (unsigned warp = 0; warp < warps_.size(); ++warp) {
      Warp& one = warps_[warp];
      const std::uint32_t missing = one.groups.empty() || one.groups[0].at != where ? one.lanes : one.ended;
      if (missing) {
        const auto lane = static_cast<std::uint32_t>(std::countr_zero(missing));
        fail_at(program_.code[where],
                "divergent barrier: " +
                    thread_name(static_cast<std::uint64_t>(first - warps_.begin()) * kLanes +
                                static_cast<unsigned>(std::countr_zero(first->groups[0].mask))) +
                    " waits at it, but " + whereabouts(warp, lane));
      }
    }
    for (Warp& warp : warps_) warp.groups[0] = {where + 1, warp.groups[0].mask, State::ready};
    ++clock_.now;
  }
}

Execution::Stop Execution::run_warp(unsigned warp) {
  std::vector<Group>& groups = warps_[warp].groups;
  while (true) {
    auto next = groups.end();
    for (auto group = groups.begin(); group != groups.end(); ++group) {
      if (group->state == State::ready && (next == groups.end() || group->at < next->at)) next = group;
    }
    if (next == groups.end()) return stop_of(warp);
    Group chosen = *next;
    groups.erase(next);
    std::erase_if(groups, [&](const Group& other) {  // those that it has met
      if (other.at != chosen.at) return false;
      chosen.mask |= other.mask;
      return true;
    });
    run_group(warp, chosen);
  }
}

// No group of the warp can go on.
Execution::Stop Execution::stop_of(unsigned warp) const {
  const std::vector<Group>& groups = warps_[warp].groups;
  if (groups.empty()) return Stop::ended;
  const Group& first = groups[0];
  const Instruction& at = program_.code[first.at];
  const auto lane = static_cast<std::uint32_t>(std::countr_zero(first.mask));
  const std::string waiting = whereabouts(warp, lane) + " for ever, while ";
  const std::uint32_t others = warps_[warp].lanes & ~first.mask;
  if (at.kind == Instruction::Kind::block_barrier) {
    if (groups.size() == 1) return Stop::at_barrier;
    fail_at(at, "divergent barrier: " + waiting +
                    whereabouts(warp, static_cast<std::uint32_t>(std::countr_zero(others))));
  }
  std::uint32_t members = 0;
  std::memcpy(&members, warps_[warp].registers + at.at[5] + lane * 4, sizeof members);
  const std::uint32_t missing = members & others ? members & others : others;
  fail_at(at, "a warp operation waits for lanes that do not come: " + waiting +
                  whereabouts(warp, static_cast<std::uint32_t>(std::countr_zero(missing))));
}

void Execution::run_group(unsigned warp, Group group) {
  Warp& own = warps_[warp];
  std::byte* registers = own.registers;
  std::uint32_t limit = 0xFFFFFFFF;  // where another group is
  for (const Group& other : own.groups) {
    if (other.at > group.at) limit = std::min(limit, other.at);
  }
  const auto stay = [&](std::uint32_t at, std::uint32_t mask, State state) {
    if (mask) own.groups.push_back({at, mask, state});
  };
  for (std::uint32_t at = group.at;;) {
    if (at >= limit) return stay(at, group.mask, State::ready);
    const Instruction& instruction = program_.code[at];
    std::uint32_t mask = group.mask;
    if (instruction.guard != Instruction::kNone) {
      const std::uint32_t guard = word_at(registers, instruction.guard);
      mask &= instruction.guard_negated ? ~guard : guard;
    }
    switch (instruction.kind) {
      case Instruction::Kind::compute:
        if (mask) instruction.compute(registers, instruction, mask);
        ++at;
        continue;
      case Instruction::Kind::load:
      case Instruction::Kind::store:
        if (mask) move_elements(warp, instruction, mask);
        ++at;
        continue;
      case Instruction::Kind::branch:
        if (mask == 0) {
          ++at;
        } else if (mask == group.mask && own.groups.empty()) {
          at = instruction.target;
        } else {
          stay(instruction.target, mask, State::ready);
          return stay(at + 1, group.mask & ~mask, State::ready);
        }
        continue;
      case Instruction::Kind::leave:
        own.ended |= mask;
        return stay(at + 1, group.mask & ~mask, State::ready);
      case Instruction::Kind::active:
        if (mask) std::fill_n(lanes_at<std::uint32_t>(registers, instruction.at[0]), kLanes, mask);
        ++at;
        continue;
      case Instruction::Kind::block_barrier:
      case Instruction::Kind::shuffle:
      case Instruction::Kind::vote:
      case Instruction::Kind::sync:
        if (mask != group.mask) {  // the others go on
          stay(at + 1, group.mask & ~mask, State::ready);
          group.mask = mask;
          if (!mask) return;
        }
        if (instruction.kind == Instruction::Kind::block_barrier || !warp_operation(warp, instruction, mask))
          return stay(at, mask, State::waits);
        if (!own.groups.empty()) return stay(at + 1, mask, State::ready);
        ++at;
        continue;
    }
  }
}

std::string Execution::thread_name(std::uint64_t thread) const {
  return "thread " + coordinates(thread, shape_.threads) + " of block " + coordinates(block_, shape_.blocks);
}

std::string Execution::whereabouts(unsigned warp, std::uint32_t lane) const {
  const std::string name = thread_name(std::uint64_t{warp} * kLanes + lane);
  if (!(warps_[warp].lanes >> lane & 1)) return name + " does not exist";
  if (warps_[warp].ended >> lane & 1) return name + " has ended";
  for (const Group& group : warps_[warp].groups) {
    if (group.mask >> lane & 1)
      return name + " waits at line " + std::to_string(program_.code[group.at].line);
  }
  return name + " runs";
}

void Execution::fail_at(const Instruction& instruction, const std::string& what) const {
  std::string source;
  for (std::size_t line = std::min<std::size_t>(instruction.line, program_.source_lines.size());
       line-- > 0 && source.empty();)
    source = program_.source_lines[line];
  throw std::runtime_error("PTX of " + program_.name + ", line " + std::to_string(instruction.line) +
                           (source.empty() ? "" : " (" + source + ")") + ": " + what + ": " +
                           program_.text.at(instruction.line - 1));
}

void Execution::fail(const Instruction& instruction, unsigned warp, std::uint32_t lane,
                     const std::string& what) const {
  fail_at(instruction, thread_name(std::uint64_t{warp} * kLanes + lane) + " " + what);
}

}  // namespace mulligan::ptx
