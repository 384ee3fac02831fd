// A PTX function in the form that the executor runs: one Instruction per line of text, its operands resolved to
// places in a warp's register file.
//
// The register file of a warp is one array of bytes. A register of 16, 32 or 64 bits is 32 values of that width, one per lane,
// one after another; a predicate is one word with a bit per lane. Immediates and special registers are in the file like
// registers, filled in before the function begins. So every operand is read in the same way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace mulligan::ptx {

inline constexpr unsigned kLanes = 32;

struct Instruction {
  enum class Kind : std::uint8_t {
    compute,
    load,
    store,
    branch,
    leave,
    block_barrier,
    shuffle,
    vote,
    sync,
    active
  };
  enum class Space : std::uint8_t { global, shared, parameter };
  enum class Shuffle : std::uint8_t { up, down, butterfly, index };
  using Compute = void (*)(std::byte* registers, const Instruction& instruction, std::uint32_t mask);

  static constexpr std::uint32_t kNone = 0xFFFFFFFF;

  Kind kind = Kind::compute;
  Space space = Space::global;
  Shuffle shuffle = Shuffle::index;
  bool guard_negated = false;
  bool sign_extends = false;        // load of a signed value into a wider register
  bool read_only = false;           // ld.global.nc
  std::uint8_t negated = 0;         // operands (bits) that are predicates with a '!'
  std::uint8_t count = 1;           // memory: elements
  std::uint8_t element_bytes = 0;   // memory: of one element
  std::uint8_t register_bytes = 0;  // memory: of one register that holds an element
  std::uint32_t guard = kNone;      // predicate, or kNone
  // Places in the register file. compute, shuffle, vote: destination, sources. load: elements, and the
  // address last; store: the same. kNone: a destination that is not wanted.
  std::uint32_t at[9] = {};
  std::uint32_t target = 0;  // branch: index of an instruction
  std::uint32_t line = 0;    // of the text, from 1 on
  std::int64_t offset = 0;   // memory: added to the address
  Compute compute = nullptr;
};

// Special registers that functions read, by their names in PTX.
enum class Special : std::uint8_t {
  tid_x,
  tid_y,
  tid_z,
  ntid_x,
  ntid_y,
  ntid_z,
  ctaid_x,
  ctaid_y,
  ctaid_z,
  nctaid_x,
  nctaid_y,
  nctaid_z,
  laneid
};

struct Program {
  struct Constant {
    std::uint32_t at;
    std::uint8_t bytes;  // of a lane; 0: a predicate
    std::uint64_t value;
  };
  struct SpecialRegister {
    std::uint32_t at;
    Special which;
  };
  struct Parameter {
    std::string name;
    std::uint32_t offset, bytes;
  };
  // Addresses [begin, end) of the block's shared memory; what lies between two variables belongs to none. `dynamic`:
  // as long as the launch says.
  struct SharedVariable {
    std::string name;
    std::uint32_t begin, end;
    bool dynamic;
  };
  struct GlobalVariable {
    std::string name;
    std::unique_ptr<char[]> memory;
    std::size_t bytes;
    bool constant;
  };

  std::string name;
  std::vector<Instruction> code;
  std::set<std::string> opcodes;          // with their modifiers
  std::vector<std::string> text;          // by line
  std::vector<std::string> source_lines;  // by line: what .loc said last, "file:line", or nothing
  std::uint32_t register_bytes = 0;
  std::vector<Constant> constants;
  std::vector<SpecialRegister> specials;
  std::vector<Parameter> parameters;
  std::vector<SharedVariable> shared;
  std::vector<GlobalVariable> globals;
  std::uint32_t most_threads = 1024;
  // The narrowest access of a memory, in bytes: races are looked for in units of it.
  std::uint32_t shared_unit = 8, global_unit = 8;
};

// Parses the entry `name` of `text`, which is what NVRTC made. Throws std::runtime_error with function, line and text
// for whatever is not known: no instruction and no modifier is skipped.
std::unique_ptr<Program> parse(const std::string& text, const std::string& name);

}  // namespace mulligan::ptx
