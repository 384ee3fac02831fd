#include "tests/ptx/memory.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace mulligan::ptx {
namespace {

std::string access(bool writes, std::size_t bytes) {
  return std::string(writes ? "writes " : "reads ") + std::to_string(bytes) + " bytes at ";
}

std::string place(bool writes, std::size_t bytes, const Region& region, std::uint64_t address) {
  return access(writes, bytes) + "byte " +
         std::to_string(static_cast<std::int64_t>(address) - reinterpret_cast<std::int64_t>(region.begin)) +
         " of " + region.name;
}

// Body(lane) for each lane of the mask, while it returns true.
template <typename Body>
bool each_lane(std::uint32_t mask, Body&& body) {
  for (; mask; mask &= mask - 1) {
    if (!body(static_cast<unsigned>(std::countr_zero(mask)))) return false;
  }
  return true;
}

// The lowest and highest of the lanes' addresses, and all their bits.
struct Span {
  std::uint64_t low = ~std::uint64_t{0}, high = 0, bits = 0;
  Span(const std::uint64_t* at, std::uint32_t mask) {
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const bool active = mask >> lane & 1;
      low = std::min(low, active ? at[lane] : ~std::uint64_t{0});
      high = std::max(high, active ? at[lane] : 0);
      bits |= active ? at[lane] : 0;
    }
  }
};

}  // namespace

void write_register(std::byte* registers, const Instruction& instruction, std::uint32_t at, unsigned lane,
                    const char* element) {
  const unsigned bytes = instruction.element_bytes, wide = instruction.register_bytes;
  char value[8] = {};
  std::memcpy(value, element, bytes);
  if (instruction.sign_extends && value[bytes - 1] < 0)
    std::memset(value + bytes, 0xFF, sizeof value - bytes);
  std::memcpy(registers + at + lane * wide, value, wide);
}

namespace {

// Register values of lane `lane`, element `i`, from memory, or to it; `move` goes from address to place.
template <bool kLoads, typename T>
void move_elements(const Instruction& instruction, const std::uint64_t* at, std::uint64_t move,
                   std::uint32_t mask, std::byte* registers) {
  for (unsigned i = 0; i < instruction.count; ++i) {
    T* values = reinterpret_cast<T*>(registers + instruction.at[i]);
    const std::uint64_t shift = move + i * sizeof(T);
    const auto one = [&](unsigned lane) {
      T& element = *reinterpret_cast<T*>(at[lane] + shift);
      if (kLoads) {
        values[lane] = element;
      } else {
        element = values[lane];
      }
      return true;
    };
    if (kLoads && mask == 0xFFFFFFFF) {
      for (unsigned lane = 0; lane < kLanes; ++lane) one(lane);
    } else {
      each_lane(mask, one);
    }
  }
}

template <bool kLoads>
void move_all(const Instruction& instruction, const std::uint64_t* at, std::uint64_t move, std::uint32_t mask,
              std::byte* registers) {
  const unsigned bytes = instruction.element_bytes, wide = instruction.register_bytes;
  if (bytes == wide) {
    return bytes == 2   ? move_elements<kLoads, std::uint16_t>(instruction, at, move, mask, registers)
           : bytes == 4 ? move_elements<kLoads, std::uint32_t>(instruction, at, move, mask, registers)
                        : move_elements<kLoads, std::uint64_t>(instruction, at, move, mask, registers);
  }
  each_lane(mask, [&](unsigned lane) {
    for (unsigned i = 0; i < instruction.count; ++i) {
      char* element = reinterpret_cast<char*>(at[lane] + move + i * bytes);
      if (kLoads) {
        write_register(registers, instruction, instruction.at[i], lane, element);
      } else {
        std::memcpy(element, registers + instruction.at[i] + lane * wide, bytes);
      }
    }
    return true;
  });
}

}  // namespace

LaunchMemory::LaunchMemory(const Program& program, std::vector<Region> regions,
                           std::uint32_t dynamic_shared_bytes, std::vector<Touch>& touches,
                           const Clock& clock)
    : regions_(std::move(regions)),
      shared_unit_(program.shared_unit),
      global_unit_(program.global_unit),
      shared_shift_(static_cast<unsigned>(std::countr_zero(program.shared_unit))),
      global_shift_(static_cast<unsigned>(std::countr_zero(program.global_unit))),
      clock_(clock) {
  for (const Program::GlobalVariable& variable : program.globals) {
    regions_.push_back(
        {variable.name, variable.memory.get(), variable.bytes, nullptr, true, !variable.constant});
  }
  std::vector<const Region*> writable;
  for (const Region& region : regions_) {
    if (region.writable && region.bytes > 0) writable.push_back(&region);
  }
  std::ranges::sort(writable, {}, [](const Region* region) { return region->begin; });
  for (const Region* region : writable) {
    if (!extents_.empty() && region->begin < extents_.back().end) {
      extents_.back().end = std::max(extents_.back().end, region->end());
    } else {
      extents_.push_back({region->begin, region->end(), nullptr});
    }
  }
  std::size_t units = 0;
  const auto units_of = [&](const Extent& extent) {
    return static_cast<std::size_t>(extent.end - extent.begin) / global_unit_ + 1;
  };
  for (const Extent& extent : extents_) units += units_of(extent);
  if (touches.size() < units) touches.resize(units);
  Touch* next = touches.data();
  for (Extent& extent : extents_) {
    extent.touches = next;
    next += units_of(extent);
  }
  for (const Region& region : regions_) {
    Facts facts{};
    for (const Extent& extent : extents_) {
      facts.written = facts.written || (region.begin < extent.end && extent.begin < region.end());
      if (region.begin < extent.begin || region.end() > extent.end) continue;
      facts.begins = static_cast<std::size_t>(region.begin - extent.begin);
      facts.touches = extent.touches;
    }
    facts.plain =
        region.readable && !facts.written && (!region.known || !std::memchr(region.known, 0, region.bytes));
    facts_.push_back(facts);
  }
  for (const Program::SharedVariable& variable : program.shared) {
    const std::uint64_t bytes = variable.dynamic ? dynamic_shared_bytes : variable.end - variable.begin;
    shared_.push_back({variable.name, variable.begin, variable.begin + bytes, std::vector<char>(bytes),
                       std::vector<Touch>(bytes / shared_unit_ + 1)});
  }
}

Region* LaunchMemory::region_of(std::uint64_t address, std::size_t bytes, bool writes, std::uint32_t& hint) {
  const auto holds = [&](const Region& region) {
    const std::uint64_t offset = address - reinterpret_cast<std::uint64_t>(region.begin);
    return offset < region.bytes && bytes <= region.bytes - offset &&
           (writes ? region.writable : region.readable);
  };
  if (hint < regions_.size() && holds(regions_[hint])) return &regions_[hint];
  for (hint = 0; hint < regions_.size(); ++hint) {
    if (holds(regions_[hint])) return &regions_[hint];
  }
  return nullptr;
}

// Says it of the argument that holds the address, or else of the one below it.
std::string LaunchMemory::no_region(std::uint64_t address, std::size_t bytes, bool writes) const {
  const Region* nearest = nullptr;
  for (const Region& region : regions_) {
    const auto begin = reinterpret_cast<std::uint64_t>(region.begin);
    if (begin > address) continue;
    if (address - begin < region.bytes && bytes <= region.bytes - (address - begin))
      return std::string(writes ? "writes " : "reads ") + region.name +
             ", which the kernel's signature does not allow";
    if (!nearest || region.begin > nearest->begin) nearest = &region;
  }
  if (!nearest) return access(writes, bytes) + "an address below all arguments";
  return place(writes, bytes, *nearest, address) + ", which has " + std::to_string(nearest->bytes) + " bytes";
}

Touch* LaunchMemory::touches_of(const char* address) {
  for (const Extent& extent : extents_) {
    if (address >= extent.begin && address < extent.end)
      return extent.touches + static_cast<std::size_t>(address - extent.begin) / global_unit_;
  }
  return nullptr;
}

LaunchMemory::Shared* LaunchMemory::shared_of(std::uint64_t address, std::size_t bytes, std::uint32_t& hint) {
  const auto holds = [&](const Shared& one) { return address >= one.begin && address + bytes <= one.end; };
  if (hint < shared_.size() && holds(shared_[hint])) return &shared_[hint];
  for (hint = 0; hint < shared_.size(); ++hint) {
    if (holds(shared_[hint])) return &shared_[hint];
  }
  return nullptr;
}

std::string LaunchMemory::no_shared(std::uint64_t address, std::size_t bytes, bool writes) const {
  const Shared* nearest = nullptr;
  for (const Shared& one : shared_) {
    if (one.begin <= address && (!nearest || one.begin > nearest->begin)) nearest = &one;
  }
  if (!nearest) return access(writes, bytes) + "an address outside of shared memory";
  return access(writes, bytes) + "byte " + std::to_string(address - nearest->begin) + " of the shared " +
         nearest->name + ", which has " + std::to_string(nearest->end - nearest->begin) + " bytes";
}

template <bool kLoads>
bool LaunchMemory::move_whole(const Instruction& instruction, const std::uint64_t* at, std::uint32_t mask,
                              std::byte* registers, Toucher first, std::uint32_t& hint) {
  const std::size_t bytes = std::size_t{instruction.element_bytes} * instruction.count;
  const Span span(at, mask);
  const std::size_t whole = span.high - span.low + bytes;
  if ((span.bits & (bytes - 1)) != 0) return false;
  if (instruction.space == Instruction::Space::shared) {
    Shared* shared = shared_of(span.low, whole, hint);
    if (!shared) return false;
    const bool ordered = each_lane(mask, [&](unsigned lane) {
      const Toucher by{first.thread + lane, first.turn};
      Touch* touch = shared->touches.data() + ((at[lane] - shared->begin) >> shared_shift_);
      for (std::size_t i = 0; i < bytes; i += shared_unit_, ++touch) {
        if (!(kLoads ? touch->quick_read_shared(clock_, by) : touch->quick_write_shared(clock_, by)))
          return false;
      }
      return true;
    });
    if (!ordered) return false;
    move_all<kLoads>(instruction, at, reinterpret_cast<std::uint64_t>(shared->memory.data()) - shared->begin,
                     mask, registers);
    return true;
  }
  const Region* region = region_of(span.low, whole, !kLoads, hint);
  if (!region) return false;
  const Facts& facts = facts_[hint];
  const auto begin = reinterpret_cast<std::uint64_t>(region->begin);
  const bool touches = !kLoads || facts.written;
  if (!kLoads || !facts.plain) {
    if (touches && (!facts.touches || (kLoads && instruction.read_only))) return false;
    const bool sound = each_lane(mask, [&](unsigned lane) {
      const std::size_t offset = at[lane] - begin;
      const Toucher by{first.thread + lane, first.turn};
      if (kLoads && region->known && std::memchr(region->known + offset, 0, bytes)) return false;
      Touch* touch = touches ? facts.touches + ((facts.begins + offset) >> global_shift_) : nullptr;
      for (std::size_t i = 0; touch && i < bytes; i += global_unit_, ++touch) {
        if (!(kLoads ? touch->quick_read_global(clock_, by) : touch->quick_write_global(clock_, by)))
          return false;
      }
      if (!kLoads && region->known) std::memset(region->known + offset, 1, bytes);
      return true;
    });
    if (!sound) return false;
  }
  move_all<kLoads>(instruction, at, 0, mask, registers);
  return true;
}

bool LaunchMemory::move_warp(const Instruction& instruction, const std::uint64_t* at, std::uint32_t mask,
                             std::byte* registers, Toucher first, std::uint32_t& hint) {
  return instruction.kind == Instruction::Kind::load
             ? move_whole<true>(instruction, at, mask, registers, first, hint)
             : move_whole<false>(instruction, at, mask, registers, first, hint);
}

char* LaunchMemory::shared_place(const Instruction& instruction, std::uint64_t address, bool writes,
                                 Toucher by, std::uint32_t& hint, std::string& wrong) {
  const std::size_t bytes = std::size_t{instruction.element_bytes} * instruction.count;
  Shared* shared = shared_of(address, bytes, hint);
  if (!shared || address % bytes != 0) {
    wrong = no_shared(address, bytes, writes) + (shared ? ", not aligned" : "");
    return nullptr;
  }
  const std::size_t offset = address - shared->begin;
  for (std::size_t i = 0; i < bytes; i += shared_unit_) {
    wrong = shared->touches[(offset + i) / shared_unit_].record(writes, true, clock_, by);
    if (wrong.empty()) continue;
    wrong = access(writes, bytes) + "byte " + std::to_string(offset) + " of shared memory, " + wrong;
    return nullptr;
  }
  return shared->memory.data() + offset;
}

std::string LaunchMemory::move_lane(const Instruction& instruction, std::uint64_t address, char* elements,
                                    Toucher by, std::uint32_t& hint) {
  const bool writes = instruction.kind == Instruction::Kind::store;
  const std::size_t bytes = std::size_t{instruction.element_bytes} * instruction.count;
  char* own = nullptr;
  if (instruction.space == Instruction::Space::shared) {
    std::string wrong;
    own = shared_place(instruction, address, writes, by, hint, wrong);
    if (!own) return wrong;
  } else {
    Region* region = region_of(address, bytes, writes, hint);
    if (!region) return no_region(address, bytes, writes);
    const auto fault = [&](const std::string& what) {
      return place(writes, bytes, *region, address) + ", " + what;
    };
    if (address % bytes != 0) return fault("which is not aligned to them");
    own = reinterpret_cast<char*>(address);
    unsigned char* known = region->known ? region->known + (own - region->begin) : nullptr;
    if (!writes && known && std::memchr(known, 0, bytes)) return fault("which nothing has written");
    Touch* touch = facts_[hint].written ? touches_of(own) : nullptr;
    for (std::size_t i = 0; touch && i < bytes; i += global_unit_, ++touch) {
      std::string wrong = touch->record(writes, false, clock_, by);
      if (wrong.empty() && !writes && instruction.read_only && touch->written_since(clock_.launch_began))
        wrong = "by an instruction for what the launch does not write, which it does";
      if (!wrong.empty()) return fault(wrong);
    }
    if (writes && known) std::memset(known, 1, bytes);
  }
  std::memcpy(writes ? own : elements, writes ? elements : own, bytes);
  return {};
}

}  // namespace mulligan::ptx
