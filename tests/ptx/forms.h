// What PTX instructions compute, by their full form ("add.rn.f32"): one function per form, over the 32 lanes of a warp.
#pragma once

#include <array>
#include <string>
#include <unordered_map>

#include "tests/ptx/program.h"

namespace mulligan::ptx {

enum class Operand : std::uint8_t { predicate, bits16, bits32, bits64 };

struct Form {
  Instruction::Compute compute;
  int count;                          // of operands, the destination first
  std::array<Operand, 6> operands{};  // how wide each is
};

// Null: no instruction of this form is known.
const Form* find_form(const std::string& name);

using Forms = std::unordered_map<std::string, Form>;
void add_integer_forms(Forms& forms);
void add_float_forms(Forms& forms);
void add_conversion_forms(Forms& forms);

}  // namespace mulligan::ptx
