// Codes of quantised matrices in fewer bytes: an adaptive arithmetic coder whose model knows rows, columns
// and roles. The format of the artifact's layout "matrices" (docs/artifact.md).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/artifact/rans.h"

namespace mulligan {

// What the coder expects of the next code of a matrix: its mean and spread, and the table of probabilities
// they choose.

// Probabilities by spread and fraction of the mean: each role has its own.
class SpreadTables {
 public:
  static constexpr int classes = 36;  // quarter octaves of spreads from 2^-6 to below 2^3 codes
  // `spread` in units of 2^-16 of a code; `fraction` in quarters of one, 0 to 3.
  SymbolTable& at(std::int32_t spread, int fraction);

 private:
  std::array<std::unique_ptr<SymbolTable>, 4 * classes> tables_;
};

// Learns over all matrices of one role; begin() starts each matrix anew but for what was learned. Encoder and
// decoder call expect() and learn() in the same order and so hold the same numbers. Integers alone, in units
// of 2^-16 of a code where nothing else is said.
class CodeModel {
 public:
  // How a code is to be coded: code = mean + ((symbol - 32) << shift) + the low `shift` bits.
  struct Expected {
    SymbolTable* table = nullptr;
    int mean = 0;
    int shift = 0;
  };
  // The symbol of codes beyond the table's reach.
  static constexpr int escape = 0;

  void begin(std::int64_t columns);
  void begin_row();
  Expected expect(std::int64_t column);
  // The code at the column of the last expect().
  void learn(std::int64_t column, int code);

 private:
  // Of what was seen above in a column.
  struct Column {
    std::int32_t spread = 0;                      // mean distance from what was expected
    std::int32_t slow = 0, middle = 0, fast = 0;  // means over about 200, 24 and 6 rows
  };
  static constexpr int inputs = 4;  // the three means of the column, the code to the left

  SpreadTables tables_;
  std::vector<Column> columns_;
  std::array<std::int32_t, inputs> weights_{};
  std::array<std::int32_t, inputs> input_{};
  std::int32_t gain_ = 0;      // of the weights' steps, in this row
  std::int64_t power_ = 0;     // sum of squared inputs in this row
  std::int32_t expected_ = 0;  // the mean
  std::int32_t usual_spread_ = 3 << 16;
  std::int64_t row_ = -1;
  std::int32_t row_distance_ = 0, row_spread_ = 0;  // decaying sums along the row
  std::int32_t row_ratio_ = 1 << 16;
  // How much of what the columns foretell holds in this row, from sums of code x foretold and of its square.
  std::int64_t foretold_ = 0, row_product_ = 0, row_square_ = 0;
  std::int64_t row_gain_ = 1 << 16;
  std::array<std::int32_t, 4> rates_{};  // of spread, slow, middle, fast in this row
};

// One matrix of several that lie one after the other, each in row-major order. Matrices of one role share
// what the model learns of them.
struct CodeMatrix {
  std::int64_t rows = 0, columns = 0;  // at least 1
  int role = 0;                        // 0 to code_roles - 1
};
inline constexpr int code_roles = 16;

// Any codes; their number must be that of the matrices. Depends on the codes alone, not on the machine.
std::string encode_codes(std::span<const std::int8_t> codes, std::span<const CodeMatrix> matrices);

// The reverse for matrices of the same shapes and roles. Throws std::runtime_error with a reason ("is
// corrupt", "is truncated") that reads on from the name of what was read.
std::vector<std::int8_t> decode_codes(std::string_view bytes, std::span<const CodeMatrix> matrices);

}  // namespace mulligan
