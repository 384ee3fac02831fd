// A PTX module: its variables and the one function that is asked for.
#include <algorithm>
#include <cstring>

#include "tests/ptx/function_parser.h"

namespace mulligan::ptx {
namespace {

std::uint64_t bytes_of_type(TokenReader& reader, std::string_view type) {
  if (type == ".b8" || type == ".u8" || type == ".s8") return 1;
  const std::optional<Operand> width = RegisterFile::width_of(type);
  if (!width || *width == Operand::predicate) reader.fail("the type " + std::string(type) + " is not known");
  return bytes_of(*width);
}

bool is_linkage(std::string_view token) {
  return token == ".visible" || token == ".weak" || token == ".extern";
}

// (.param .u64 .ptr .global .align 1 name, ...)
void parse_parameters(TokenReader& reader, Program& program) {
  reader.expect("(");
  std::uint32_t offset = 0;
  while (!reader.take_if(")")) {
    reader.expect(".param");
    std::uint64_t alignment = 1;
    if (reader.take_if(".align")) alignment = reader.take_number();
    const std::uint64_t element = bytes_of_type(reader, reader.take());
    if (reader.take_if(".ptr")) {
      reader.take_if(".global");
      if (reader.take_if(".align")) reader.take_number();
    }
    Program::Parameter parameter{std::string(reader.take()), 0, static_cast<std::uint32_t>(element)};
    if (reader.take_if("[")) {
      parameter.bytes *= static_cast<std::uint32_t>(reader.take_number());
      reader.expect("]");
    }
    const auto step = static_cast<std::uint32_t>(std::max(alignment, element));
    parameter.offset = offset = (offset + step - 1) / step * step;
    offset += parameter.bytes;
    program.parameters.push_back(std::move(parameter));
    if (reader.peek() != ")") reader.expect(",");
  }
}

void parse_entry(TokenReader& reader, Program& program, const Symbols& symbols) {
  parse_parameters(reader, program);
  while (reader.peek() != "{") {
    const std::string_view directive = reader.take();
    std::uint64_t product = reader.take_number();
    while (reader.take_if(",")) product *= reader.take_number();
    if (directive == ".maxntid" || directive == ".reqntid") {
      program.most_threads = static_cast<std::uint32_t>(product);
    } else if (directive != ".minnctapersm" && directive != ".maxnreg") {
      reader.fail("the directive " + std::string(directive) + " is not known");
    }
  }
  FunctionParser(reader, program, symbols).parse_body();
}

std::uint64_t place_global(Program& program, const Declaration& declaration, bool constant) {
  auto memory = std::make_unique<char[]>(declaration.bytes);
  for (std::size_t i = 0; i < declaration.values.size(); ++i) {
    std::memcpy(memory.get() + i * declaration.element_bytes, &declaration.values[i],
                declaration.element_bytes);
  }
  const auto address = reinterpret_cast<std::uint64_t>(memory.get());
  program.globals.push_back({declaration.name, std::move(memory), declaration.bytes, constant});
  return address;
}

}  // namespace

Declaration parse_declaration(TokenReader& reader) {
  Declaration declaration;
  if (reader.take_if(".align")) declaration.alignment = reader.take_number();
  declaration.element_bytes = bytes_of_type(reader, reader.take());
  declaration.name = reader.take();
  declaration.bytes = declaration.element_bytes;
  while (reader.take_if("[")) {
    declaration.bytes = reader.peek() == "]" ? 0 : declaration.bytes * reader.take_number();
    reader.expect("]");
  }
  if (reader.take_if("=")) {
    const bool several = reader.take_if("{");
    do {
      declaration.values.push_back(reader.take_number());
    } while (several && reader.take_if(","));
    if (several) reader.expect("}");
    if (declaration.values.size() * declaration.element_bytes > declaration.bytes)
      reader.fail("more values than elements");
  }
  reader.expect(";");
  return declaration;
}

// There is room before each variable, so that an index one past the end of a variable is not in the next one. The variable whose length
// the launch sets comes last.
std::uint64_t place_shared(Program& program, const Declaration& declaration) {
  constexpr std::uint32_t kRoom = 256, kDynamic = 1 << 20;
  const bool dynamic = declaration.bytes == 0;
  std::uint32_t begin = dynamic ? kDynamic : kRoom;
  for (const Program::SharedVariable& other : program.shared) {
    if (!dynamic && !other.dynamic) begin = std::max(begin, (other.end / kRoom + 2) * kRoom);
  }
  const std::uint32_t end = begin + static_cast<std::uint32_t>(declaration.bytes);
  program.shared.push_back({declaration.name, begin, end, dynamic});
  return begin;
}

std::unique_ptr<Program> parse(const std::string& text, const std::string& name) {
  TokenReader reader(text);
  auto program = std::make_unique<Program>();
  program->text = reader.lines();
  reader.set_function(name);
  Symbols symbols;
  bool found = false;
  while (!reader.at_end()) {
    const std::string_view token = reader.take();
    if (token == ".version" || token == ".target" || token == ".address_size" || token == ".file") {
      reader.take_line();
    } else if (is_linkage(token)) {
      continue;
    } else if (token == ".global" || token == ".const") {
      const Declaration declaration = parse_declaration(reader);
      symbols.insert_or_assign(declaration.name, place_global(*program, declaration, token == ".const"));
    } else if (token == ".shared") {
      const Declaration declaration = parse_declaration(reader);
      symbols.insert_or_assign(declaration.name, place_shared(*program, declaration));
    } else if (token == ".entry") {
      if (reader.peek() == name) {
        reader.take();
        program->name = name;
        parse_entry(reader, *program, symbols);
        found = true;
      } else {
        while (reader.peek() != "{") reader.take();
        reader.skip_braces();
      }
    } else {
      reader.fail("'" + std::string(token) + "' is not known here");
    }
  }
  if (!found) reader.fail("the module has no function " + name);
  return program;
}

}  // namespace mulligan::ptx
