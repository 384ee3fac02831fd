// Where the registers of one function lie in a warp's register file.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/ptx/forms.h"
#include "tests/ptx/program.h"

namespace mulligan::ptx {

constexpr std::uint32_t bytes_of(Operand width) {
  return width == Operand::bits16 ? 2 : width == Operand::bits32 ? 4 : width == Operand::bits64 ? 8 : 0;
}

struct Register {
  std::uint32_t at;
  Operand width;
};

class RegisterFile {
 public:
  // Of a declaration's type: ".pred", ".b32", ".f64". Nothing: no such type is known.
  static std::optional<Operand> width_of(std::string_view type);

  // "%r" with a count declares %r0 to %r(count-1); without, the name itself.
  void declare(const std::string& name, Operand width, std::optional<std::uint64_t> count);
  void open_scope() { scopes_.emplace_back(); }
  void close_scope() { scopes_.pop_back(); }
  // A declared or special register; nothing: there is none of the name.
  std::optional<Register> find(std::string_view name);
  // A place that holds `value` in all lanes.
  std::uint32_t constant(Operand width, std::uint64_t value);

  // A place of no name.
  std::uint32_t temporary(Operand width) { return place(width); }

  // Hands over what was placed.
  void finish(Program& program);

 private:
  std::uint32_t place(Operand width);

  std::vector<std::map<std::string, Register, std::less<>>> scopes_{1};
  std::map<std::string, Register, std::less<>> special_;
  std::map<std::pair<Operand, std::uint64_t>, std::uint32_t> constants_;
  std::vector<Program::SpecialRegister> special_places_;
  std::uint32_t bytes_ = 0;
};

}  // namespace mulligan::ptx
