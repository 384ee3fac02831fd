#include "tests/ptx/opcodes.h"

#include <stdexcept>

namespace mulligan::ptx {

void require_listed(const Program& program) {
  static const std::set<std::string> listed = {
#include "tests/ptx/opcodes.inc"
  };
  for (const std::string& opcode : program.opcodes) {
    if (!listed.contains(opcode))
      throw std::runtime_error("PTX of " + program.name + ": tests/ptx/opcodes.inc does not list " + opcode +
                               "; test what it computes, then run tests/ptx/list_opcodes, which lists it");
  }
}

}  // namespace mulligan::ptx
