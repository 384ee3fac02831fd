// The body of one PTX function: declarations, labels, instructions.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tests/ptx/register_file.h"
#include "tests/ptx/tokens.h"

namespace mulligan::ptx {

// Addresses of variables of the module and the function.
using Symbols = std::map<std::string, std::uint64_t, std::less<>>;

class FunctionParser {
 public:
  FunctionParser(TokenReader& reader, Program& program, Symbols symbols)
      : reader_(reader), program_(program), symbols_(std::move(symbols)) {}

  // From the opening brace to the closing one.
  void parse_body();

 private:
  struct Number {
    std::uint64_t value;
  };
  struct Vector {
    std::vector<std::string_view> names;
  };
  struct Address {
    std::string_view base;
    std::int64_t offset;
  };
  // A register, label or symbol is a name; "p|q" and "!p" keep their marks.
  struct Name {
    std::string_view text, second;
    bool negated;
  };
  using Argument = std::variant<Name, Number, Vector, Address>;

  void declare_registers();
  void parse_instruction();
  Argument parse_argument();
  std::vector<Argument> parse_arguments();

  void build(Instruction instruction, const std::string& opcode, const std::vector<Argument>& arguments);
  void build_compute(Instruction instruction, const std::string& form,
                     const std::vector<Argument>& arguments);
  void build_vector_move(Instruction instruction, const std::string& opcode,
                         const std::vector<Argument>& arguments);
  void build_memory(Instruction instruction, const std::string& opcode,
                    const std::vector<Argument>& arguments);
  void build_warp_operation(Instruction instruction, const std::string& opcode,
                            const std::vector<Argument>& arguments);
  std::uint32_t narrowed(Instruction instruction, Register from, Operand to);
  void place_address(Instruction& instruction, const Address& address);

  Register register_named(std::string_view name);
  // Where an operand of that width is read.
  std::uint32_t source(const Argument& argument, Operand width);
  std::uint32_t destination(std::string_view name, Operand width);
  [[noreturn]] void fail(const std::string& what) const { reader_.fail(what, line_); }

  TokenReader& reader_;
  Program& program_;
  Symbols symbols_;
  RegisterFile registers_;
  std::uint32_t line_ = 0;
  std::map<std::string, std::uint32_t, std::less<>> labels_;
  std::vector<std::pair<std::size_t, std::string_view>> branches_;  // instruction, its label
};

// ".shared .align 16 .b8 name[128]": what a declaration of a variable says from its alignment on, to its ';'.
struct Declaration {
  std::string name;
  std::uint64_t bytes = 0;  // 0: of a length that is given elsewhere
  std::uint64_t alignment = 1;
  std::vector<std::uint64_t> values;  // of its elements
  std::uint64_t element_bytes = 1;
};
Declaration parse_declaration(TokenReader& reader);
// Gives it a place in the block's shared memory; returns the address.
std::uint64_t place_shared(Program& program, const Declaration& declaration);

}  // namespace mulligan::ptx
