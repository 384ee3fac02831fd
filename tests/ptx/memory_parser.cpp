// Instructions of a function that touch memory or other lanes.
#include <algorithm>

#include "tests/ptx/function_parser.h"

namespace mulligan::ptx {
namespace {

std::vector<std::string> parts_of(const std::string& opcode) {
  std::vector<std::string> parts(1);
  for (const char c : opcode) {
    if (c == '.') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

Operand width_for(unsigned bytes) {
  return bytes == 8 ? Operand::bits64 : bytes == 4 ? Operand::bits32 : Operand::bits16;
}

}  // namespace

// ld.global.nc.v4.f32 {a, b, c, d}, [address]; st.shared.u16 [address], a;
void FunctionParser::build_memory(Instruction instruction, const std::string& opcode,
                                  const std::vector<Argument>& arguments) {
  const std::vector<std::string> parts = parts_of(opcode);
  const bool loads = parts[0] == "ld";
  instruction.kind = loads ? Instruction::Kind::load : Instruction::Kind::store;
  bool placed = false;
  for (std::size_t i = 1; i + 1 < parts.size(); ++i) {
    const std::string& part = parts[i];
    if (part == "global" || part == "shared" || (part == "param" && loads)) {
      placed = true;
      instruction.space = part == "global"   ? Instruction::Space::global
                          : part == "shared" ? Instruction::Space::shared
                                             : Instruction::Space::parameter;
    } else if (part == "nc" && loads) {
      instruction.read_only = true;
    } else if (part == "v2" || part == "v4") {
      instruction.count = part == "v2" ? 2 : 4;
    } else {
      fail("the modifier ." + part + " is not known");
    }
  }
  if (!placed) fail("an access without a named memory is not known");
  const std::string& type = parts.back();
  const std::string letters = "busf";
  if (type.size() < 2 || letters.find(type[0]) == letters.npos) fail("the type ." + type + " is not known");
  const std::string bits = type.substr(1);
  if (bits != "8" && bits != "16" && bits != "32" && bits != "64")
    fail("the type ." + type + " is not known");
  instruction.element_bytes = static_cast<std::uint8_t>(std::stoi(bits) / 8);
  instruction.sign_extends = loads && type[0] == 's';

  if (arguments.size() != 2) fail("a memory access of other than two operands");
  const Argument &values = arguments[loads ? 0 : 1], &where = arguments[loads ? 1 : 0];
  const Address* address = std::get_if<Address>(&where);
  if (!address) fail("an access without an address");
  std::vector<Argument> elements{values};
  if (const Vector* vector = std::get_if<Vector>(&values)) {
    elements.clear();
    for (const std::string_view name : vector->names) elements.emplace_back(Name{name, {}, false});
  }
  if (elements.size() != instruction.count) fail("another number of registers than of elements");
  instruction.register_bytes = std::max<std::uint8_t>(instruction.element_bytes, 2);
  if (const Name* first = std::get_if<Name>(&elements[0]))
    instruction.register_bytes = static_cast<std::uint8_t>(bytes_of(register_named(first->text).width));
  if (instruction.register_bytes < instruction.element_bytes)
    fail("a register that does not hold an element");
  for (std::size_t i = 0; i < elements.size(); ++i)
    instruction.at[i] = source(elements[i], width_for(instruction.register_bytes));
  place_address(instruction, *address);

  const std::uint32_t bytes = instruction.element_bytes;
  if (instruction.space == Instruction::Space::shared)
    program_.shared_unit = std::min(program_.shared_unit, bytes);
  if (instruction.space == Instruction::Space::global)
    program_.global_unit = std::min(program_.global_unit, bytes);
  program_.code.push_back(instruction);
}

void FunctionParser::place_address(Instruction& instruction, const Address& address) {
  std::uint32_t& at = instruction.at[instruction.count];
  instruction.offset = address.offset;
  if (instruction.space == Instruction::Space::parameter) {
    const auto parameter = std::ranges::find(program_.parameters, address.base, &Program::Parameter::name);
    if (parameter == program_.parameters.end()) fail("a parameter that is not known");
    if (address.offset < 0 ||
        address.offset + instruction.element_bytes * instruction.count > parameter->bytes)
      fail("an access beyond its parameter");
    instruction.offset += parameter->offset;
    at = Instruction::kNone;
    return;
  }
  if (const auto symbol = symbols_.find(address.base); symbol != symbols_.end()) {
    at = registers_.constant(Operand::bits64, symbol->second);
    return;
  }
  const Register base = register_named(address.base);
  if (base.width != Operand::bits64) fail("an address of less than 64 bits is not known");
  at = base.at;
}

// shfl.sync.bfly.b32 value|inside, source, lanes, bounds, mask; vote.sync.ballot.b32 lanes, predicate, mask;
// bar.warp.sync mask; activemask.b32 lanes
void FunctionParser::build_warp_operation(Instruction instruction, const std::string& opcode,
                                          const std::vector<Argument>& arguments) {
  using Kind = Instruction::Kind;
  const auto want = [&](std::size_t count) {
    if (arguments.size() != count) fail("another number of operands than " + opcode + " has");
  };
  const auto result = [&]() -> const Name& {
    const Name* name = std::get_if<Name>(&arguments[0]);
    if (!name || name->negated) fail("a result that is not known");
    return *name;
  };
  static const std::map<std::string, Instruction::Shuffle> shuffles = {
      {"shfl.sync.up.b32", Instruction::Shuffle::up},
      {"shfl.sync.down.b32", Instruction::Shuffle::down},
      {"shfl.sync.bfly.b32", Instruction::Shuffle::butterfly},
      {"shfl.sync.idx.b32", Instruction::Shuffle::index}};
  if (const auto shuffle = shuffles.find(opcode); shuffle != shuffles.end()) {
    want(5);
    instruction.kind = Kind::shuffle;
    instruction.shuffle = shuffle->second;
    const Name& name = result();
    instruction.at[0] = destination(name.text, Operand::bits32);
    instruction.at[1] =
        name.second.empty() ? Instruction::kNone : destination(name.second, Operand::predicate);
    for (std::size_t i = 1; i < 5; ++i) instruction.at[i + 1] = source(arguments[i], Operand::bits32);
  } else if (opcode == "vote.sync.ballot.b32") {
    want(3);
    instruction.kind = Kind::vote;
    instruction.at[0] = destination(result().text, Operand::bits32);
    const Name* asked = std::get_if<Name>(&arguments[1]);
    instruction.negated = asked && asked->negated ? 2 : 0;
    instruction.at[1] = source(arguments[1], Operand::predicate);
    instruction.at[5] = source(arguments[2], Operand::bits32);
  } else if (opcode == "bar.warp.sync") {
    want(1);
    instruction.kind = Kind::sync;
    instruction.at[5] = source(arguments[0], Operand::bits32);
  } else if (opcode == "activemask.b32") {
    want(1);
    instruction.kind = Kind::active;
    instruction.at[0] = destination(result().text, Operand::bits32);
  } else {
    fail("the instruction " + opcode + " is not known");
  }
  program_.code.push_back(instruction);
}

}  // namespace mulligan::ptx
