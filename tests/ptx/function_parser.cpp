#include "tests/ptx/function_parser.h"

namespace mulligan::ptx {

void FunctionParser::parse_body() {
  reader_.expect("{");
  for (int depth = 1; depth > 0;) {
    line_ = reader_.line();
    const std::string_view token = reader_.peek();
    if (reader_.take_if("{")) {
      ++depth;
      registers_.open_scope();
    } else if (reader_.take_if("}")) {
      if (--depth > 0) registers_.close_scope();
    } else if (token == ".reg") {
      declare_registers();
    } else if (token == ".shared") {
      reader_.take();
      const Declaration declaration = parse_declaration(reader_);
      symbols_.insert_or_assign(declaration.name, place_shared(program_, declaration));
    } else if (token == ".loc") {
      const auto words = reader_.take_line();
      if (words.size() < 3) fail(".loc without file and line");
      if (program_.source_lines.size() <= line_) program_.source_lines.resize(program_.text.size() + 1);
      program_.source_lines.at(line_) = "file " + std::string(words[1]) + ", line " + std::string(words[2]);
    } else if (token == ".pragma") {  // advice to the assembler, such as not to unroll
      while (reader_.take() != ";") continue;
    } else if (token.starts_with(".")) {
      fail("the directive " + std::string(token) + " is not known");
    } else if (reader_.peek(1) == ":") {
      labels_.emplace(reader_.take(), static_cast<std::uint32_t>(program_.code.size()));
      reader_.expect(":");
    } else if (reader_.take_if(";")) {
      continue;
    } else {
      parse_instruction();
    }
  }
  for (const auto& [index, label] : branches_) {
    const auto found = labels_.find(label);
    if (found == labels_.end()) reader_.fail("a branch to no label", program_.code[index].line);
    program_.code[index].target = found->second;
  }
  const bool ends = !program_.code.empty() && program_.code.back().guard == Instruction::kNone &&
                    (program_.code.back().kind == Instruction::Kind::leave ||
                     program_.code.back().kind == Instruction::Kind::branch);
  if (!ends) reader_.fail("the function goes on beyond its last instruction", line_);
  registers_.finish(program_);
}

// .reg .b32 %r<68>, a;
void FunctionParser::declare_registers() {
  reader_.expect(".reg");
  const std::optional<Operand> width = RegisterFile::width_of(reader_.take());
  if (!width) fail("registers of an unknown type");
  do {
    const std::string name(reader_.take());
    std::optional<std::uint64_t> count;
    if (reader_.take_if("<")) {
      count = reader_.take_number();
      reader_.expect(">");
    }
    registers_.declare(name, *width, count);
  } while (reader_.take_if(","));
  reader_.expect(";");
}

void FunctionParser::parse_instruction() {
  Instruction instruction;
  instruction.line = line_;
  if (reader_.take_if("@")) {
    instruction.guard_negated = reader_.take_if("!");
    const Register guard = register_named(reader_.take());
    if (guard.width != Operand::predicate) fail("a guard that is not a predicate");
    instruction.guard = guard.at;
  }
  const std::string opcode(reader_.take());
  program_.opcodes.insert(opcode);
  build(instruction, opcode, parse_arguments());
}

std::vector<FunctionParser::Argument> FunctionParser::parse_arguments() {
  std::vector<Argument> arguments;
  if (reader_.take_if(";")) return arguments;
  do {
    arguments.push_back(parse_argument());
  } while (reader_.take_if(","));
  reader_.expect(";");
  return arguments;
}

FunctionParser::Argument FunctionParser::parse_argument() {
  if (reader_.take_if("{")) {
    Vector vector;
    do {
      vector.names.push_back(reader_.take());
    } while (reader_.take_if(","));
    reader_.expect("}");
    return vector;
  }
  if (reader_.take_if("[")) {
    Address address{reader_.take(), 0};
    if (reader_.take_if("+")) address.offset = static_cast<std::int64_t>(reader_.take_number());
    reader_.expect("]");
    return address;
  }
  const char first = reader_.peek().empty() ? ' ' : reader_.peek().front();
  if (first == '-' || (first >= '0' && first <= '9')) return Number{reader_.take_number()};
  Name name{{}, {}, reader_.take_if("!")};
  name.text = reader_.take();
  if (reader_.take_if("|")) name.second = reader_.take();
  return name;
}

void FunctionParser::build(Instruction instruction, const std::string& opcode,
                           const std::vector<Argument>& arguments) {
  using Kind = Instruction::Kind;
  if (opcode == "bra" || opcode == "bra.uni") {
    if (arguments.size() != 1 || !std::holds_alternative<Name>(arguments[0])) fail("a branch to no label");
    instruction.kind = Kind::branch;
    branches_.emplace_back(program_.code.size(), std::get<Name>(arguments[0]).text);
    program_.code.push_back(instruction);
  } else if (opcode == "ret" || opcode == "exit") {
    if (!arguments.empty()) fail("an operand too many");
    instruction.kind = Kind::leave;
    program_.code.push_back(instruction);
  } else if (opcode == "bar.sync") {
    const Number* number = arguments.size() == 1 ? std::get_if<Number>(&arguments[0]) : nullptr;
    if (!number || number->value != 0) fail("a barrier other than that of the whole block");
    instruction.kind = Kind::block_barrier;
    program_.code.push_back(instruction);
  } else if (opcode.starts_with("ld.") || opcode.starts_with("st.")) {
    build_memory(instruction, opcode, arguments);
  } else if (opcode.starts_with("shfl.") || opcode.starts_with("vote.") || opcode.starts_with("bar.warp.") ||
             opcode.starts_with("activemask.")) {
    build_warp_operation(instruction, opcode, arguments);
  } else if (opcode.starts_with("mov.b") && arguments.size() == 2 &&
             (std::holds_alternative<Vector>(arguments[0]) || std::holds_alternative<Vector>(arguments[1]))) {
    build_vector_move(instruction, opcode, arguments);
  } else {
    build_compute(instruction, opcode, arguments);
  }
}

void FunctionParser::build_compute(Instruction instruction, const std::string& name,
                                   const std::vector<Argument>& arguments) {
  const Form* form = find_form(name);
  if (!form) fail("the instruction " + name + " is not known");
  if (static_cast<int>(arguments.size()) != form->count)
    fail("another number of operands than " + name + " has");
  const Name* result = std::get_if<Name>(&arguments[0]);
  if (!result || result->negated || !result->second.empty()) fail("a result that is not known");
  // What is converted may stand in a register that is wider than its type: its low bits are it.
  if (const Name* from = name.starts_with("cvt.") ? std::get_if<Name>(&arguments[1]) : nullptr) {
    if (const Register wide = register_named(from->text);
        bytes_of(wide.width) > bytes_of(form->operands[1])) {
      instruction.at[1] = narrowed(instruction, wide, form->operands[1]);
      instruction.at[0] = destination(result->text, form->operands[0]);
      instruction.compute = form->compute;
      program_.code.push_back(instruction);
      return;
    }
  }
  instruction.compute = form->compute;
  instruction.at[0] = destination(result->text, form->operands[0]);
  for (int i = 1; i < form->count; ++i) {
    const Argument& argument = arguments[static_cast<std::size_t>(i)];
    instruction.at[i] = source(argument, form->operands[static_cast<std::size_t>(i)]);
    if (const Name* one = std::get_if<Name>(&argument); one && one->negated) {
      if (form->operands[static_cast<std::size_t>(i)] != Operand::predicate)
        fail("'!' before what is not a predicate");
      instruction.negated = static_cast<std::uint8_t>(instruction.negated | 1 << i);
    }
  }
  program_.code.push_back(instruction);
}

// A place that gets the low bits of a register before `instruction`, under its guard.
std::uint32_t FunctionParser::narrowed(Instruction instruction, Register from, Operand to) {
  if (from.width == Operand::bits64 && to == Operand::bits16)
    from = {narrowed(instruction, from, Operand::bits32), Operand::bits32};
  const char* form = from.width == Operand::bits64 ? "mov.b64 part 0 of 2" : "mov.b32 part 0 of 2";
  instruction.compute = find_form(form)->compute;
  instruction.at[0] = registers_.temporary(to);
  instruction.at[1] = from.at;
  program_.code.push_back(instruction);
  return instruction.at[0];
}

// Several registers from one, or one from several. Those of a vector are narrower than the other, so that none of
// them is it.
void FunctionParser::build_vector_move(Instruction instruction, const std::string& opcode,
                                       const std::vector<Argument>& arguments) {
  if (const Vector* from = std::get_if<Vector>(&arguments[1])) {
    std::vector<Argument> flat{arguments[0]};
    for (const std::string_view name : from->names) flat.emplace_back(Name{name, {}, false});
    return build_compute(instruction, opcode + " pack " + std::to_string(from->names.size()), flat);
  }
  const std::vector<std::string_view>& names = std::get<Vector>(arguments[0]).names;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == "_") continue;
    build_compute(instruction, opcode + " part " + std::to_string(i) + " of " + std::to_string(names.size()),
                  {Name{names[i], {}, false}, arguments[1]});
  }
}

Register FunctionParser::register_named(std::string_view name) {
  const std::optional<Register> found = registers_.find(name);
  if (!found) fail("'" + std::string(name) + "' is not known");
  return *found;
}

std::uint32_t FunctionParser::source(const Argument& argument, Operand width) {
  if (const Number* number = std::get_if<Number>(&argument)) return registers_.constant(width, number->value);
  const Name* name = std::get_if<Name>(&argument);
  if (!name || !name->second.empty()) fail("an operand that is not known");
  if (const auto symbol = symbols_.find(name->text); symbol != symbols_.end()) {
    if (width != Operand::bits64) fail("an address in a register that does not hold it");
    return registers_.constant(width, symbol->second);
  }
  const Register found = register_named(name->text);
  if (found.width != width) fail("'" + std::string(name->text) + "' is of another width");
  return found.at;
}

std::uint32_t FunctionParser::destination(std::string_view name, Operand width) {
  const Register found = register_named(name);
  if (found.width != width) fail("'" + std::string(name) + "' is of another width");
  return found.at;
}

}  // namespace mulligan::ptx
