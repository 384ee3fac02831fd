#include "tests/ptx/register_file.h"

#include <algorithm>

namespace mulligan::ptx {
namespace {

struct SpecialName {
  std::string_view name;
  Special which;
};
constexpr SpecialName kSpecials[] = {
    {"%tid.x", Special::tid_x},       {"%tid.y", Special::tid_y},       {"%tid.z", Special::tid_z},
    {"%ntid.x", Special::ntid_x},     {"%ntid.y", Special::ntid_y},     {"%ntid.z", Special::ntid_z},
    {"%ctaid.x", Special::ctaid_x},   {"%ctaid.y", Special::ctaid_y},   {"%ctaid.z", Special::ctaid_z},
    {"%nctaid.x", Special::nctaid_x}, {"%nctaid.y", Special::nctaid_y}, {"%nctaid.z", Special::nctaid_z},
    {"%laneid", Special::laneid}};

}  // namespace

std::optional<Operand> RegisterFile::width_of(std::string_view type) {
  if (type == ".pred") return Operand::predicate;
  if (type == ".b16" || type == ".u16" || type == ".s16" || type == ".f16") return Operand::bits16;
  if (type == ".b32" || type == ".u32" || type == ".s32" || type == ".f32") return Operand::bits32;
  if (type == ".b64" || type == ".u64" || type == ".s64" || type == ".f64") return Operand::bits64;
  return std::nullopt;
}

std::uint32_t RegisterFile::place(Operand width) {
  constexpr std::uint32_t kLine = 64;  // of a cache, so that vector instructions read whole ones
  const std::uint32_t at = bytes_;
  bytes_ += std::max(bytes_of(width) * kLanes, kLine);
  return at;
}

void RegisterFile::declare(const std::string& name, Operand width, std::optional<std::uint64_t> count) {
  if (!count) {
    scopes_.back().insert_or_assign(name, Register{place(width), width});
    return;
  }
  for (std::uint64_t i = 0; i < *count; ++i)
    scopes_.back().insert_or_assign(name + std::to_string(i), Register{Instruction::kNone, width});
}

// Of a numbered register that is never read or written there is no place.
std::optional<Register> RegisterFile::find(std::string_view name) {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    const auto found = scope->find(name);
    if (found == scope->end()) continue;
    if (found->second.at == Instruction::kNone) found->second.at = place(found->second.width);
    return found->second;
  }
  if (const auto known = special_.find(name); known != special_.end()) return known->second;
  for (const SpecialName& one : kSpecials) {
    if (one.name != name) continue;
    const Register made{place(Operand::bits32), Operand::bits32};
    special_places_.push_back({made.at, one.which});
    special_.emplace(name, made);
    return made;
  }
  return std::nullopt;
}

std::uint32_t RegisterFile::constant(Operand width, std::uint64_t value) {
  if (width == Operand::predicate) value = value != 0;
  if (width == Operand::bits16) value &= 0xFFFF;
  if (width == Operand::bits32) value &= 0xFFFFFFFF;
  const auto [found, fresh] = constants_.emplace(std::pair(width, value), 0);
  if (fresh) found->second = place(width);
  return found->second;
}

void RegisterFile::finish(Program& program) {
  program.register_bytes = bytes_;
  program.specials = special_places_;
  for (const auto& [what, at] : constants_)
    program.constants.push_back({at, static_cast<std::uint8_t>(bytes_of(what.first)), what.second});
}

}  // namespace mulligan::ptx
