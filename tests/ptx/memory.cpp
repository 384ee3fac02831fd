#include "tests/ptx/memory.h"

#include <algorithm>
#include <bit>

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

}  // namespace

LaunchMemory::LaunchMemory(const Program& program, std::vector<Region> regions,
                           std::uint32_t dynamic_shared_bytes, std::vector<Touch>& touches,
                           const Clock& clock)
    : regions_(std::move(regions)),
      shared_unit_(program.shared_unit),
      global_unit_(program.global_unit),
      shared_shift_(static_cast<unsigned>(std::countr_zero(program.shared_unit))),
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
    is_written_.push_back(std::ranges::any_of(extents_, [&](const Extent& extent) {
      return region.begin < extent.end && extent.begin < region.end();
    }));
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

std::string LaunchMemory::load(const Instruction& instruction, std::uint64_t address, char* to, Toucher by,
                               std::uint32_t& hint) {
  const std::size_t bytes = std::size_t{instruction.element_bytes} * instruction.count;
  if (instruction.space == Instruction::Space::shared) {
    Shared* shared = shared_of(address, bytes, hint);
    if (!shared) return no_shared(address, bytes, false);
    if (address % bytes != 0) return no_shared(address, bytes, false) + ", not aligned";
    const std::size_t offset = address - shared->begin;
    for (std::size_t i = 0; i < bytes; i += shared_unit_) {
      const std::string wrong = shared->touches[(offset + i) / shared_unit_].read_shared(clock_, by);
      if (!wrong.empty())
        return access(false, bytes) + "byte " + std::to_string(offset) + " of shared memory, " + wrong;
    }
    std::memcpy(to, shared->memory.data() + offset, bytes);
    return {};
  }
  Region* region = region_of(address, bytes, false, hint);
  if (!region) return no_region(address, bytes, false);
  if (address % bytes != 0) return place(false, bytes, *region, address) + ", which is not aligned to them";
  const char* from = reinterpret_cast<const char*>(address);
  if (region->known && std::memchr(region->known + (from - region->begin), 0, bytes))
    return place(false, bytes, *region, address) + ", which nothing has written";
  if (is_written_[hint]) {
    Touch* touch = touches_of(from);
    for (std::size_t i = 0; touch && i < bytes; i += global_unit_, ++touch) {
      std::string wrong = touch->read_global(clock_, by);
      if (wrong.empty() && instruction.read_only && touch->written_since(clock_.launch_began))
        wrong = "by an instruction for what the launch does not write, which it does";
      if (!wrong.empty()) return place(false, bytes, *region, address) + ", " + wrong;
    }
  }
  std::memcpy(to, from, bytes);
  return {};
}

std::string LaunchMemory::store(const Instruction& instruction, std::uint64_t address, const char* from,
                                Toucher by, std::uint32_t& hint) {
  const std::size_t bytes = std::size_t{instruction.element_bytes} * instruction.count;
  if (instruction.space == Instruction::Space::shared) {
    Shared* shared = shared_of(address, bytes, hint);
    if (!shared) return no_shared(address, bytes, true);
    if (address % bytes != 0) return no_shared(address, bytes, true) + ", not aligned";
    const std::size_t offset = address - shared->begin;
    for (std::size_t i = 0; i < bytes; i += shared_unit_) {
      const std::string wrong = shared->touches[(offset + i) / shared_unit_].write_shared(clock_, by);
      if (!wrong.empty())
        return access(true, bytes) + "byte " + std::to_string(offset) + " of shared memory, " + wrong;
    }
    std::memcpy(shared->memory.data() + offset, from, bytes);
    return {};
  }
  Region* region = region_of(address, bytes, true, hint);
  if (!region) return no_region(address, bytes, true);
  if (address % bytes != 0) return place(true, bytes, *region, address) + ", which is not aligned to them";
  char* to = reinterpret_cast<char*>(address);
  Touch* touch = touches_of(to);
  for (std::size_t i = 0; i < bytes; i += global_unit_, ++touch) {
    const std::string wrong = touch->write_global(clock_, by);
    if (!wrong.empty()) return place(true, bytes, *region, address) + ", " + wrong;
  }
  if (region->known) std::memset(region->known + (to - region->begin), 1, bytes);
  std::memcpy(to, from, bytes);
  return {};
}

}  // namespace mulligan::ptx
