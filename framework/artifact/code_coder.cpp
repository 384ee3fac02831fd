#include "framework/artifact/code_coder.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <map>
#include <stdexcept>

#include "framework/artifact/rans.h"

namespace mulligan {
namespace {

constexpr std::int32_t one = 1 << 16;
constexpr std::array<std::int64_t, 4> rows_remembered = {32, 200, 24, 6};  // of spread, slow, middle, fast
constexpr std::int32_t smallest_spread = one / 64;
// Beyond this spread low bits are so even that they are coded as they are.
constexpr std::int32_t widest_table = 6 * one;
constexpr int classes_per_octave = 4;
constexpr int spread_classes = 36;  // from 2^-6 to below 2^3 codes
constexpr int weight_bits = 24;
constexpr std::int32_t heaviest_weight = 2 << weight_bits;
// Step of the weights: step / 2^16 * error * input / (power of the inputs).
constexpr std::int64_t step = 300;
constexpr std::uint32_t prior_strength = 150;
// A row counts as usual until it shows otherwise: as if sums of so much had been as expected.
constexpr std::int64_t usual_distance = std::int64_t{64 * 3} << 12;
constexpr std::int64_t usual_square = std::int64_t{32} << 16;

std::int32_t scaled(std::int64_t a, std::int64_t b) {
  return static_cast<std::int32_t>(a * b >> 16);
}

// Quarter octaves, linear within an octave.
int class_of(std::int32_t spread) {
  const int octave = std::bit_width(static_cast<std::uint32_t>(spread)) - 1;
  const int quarter = spread >> (octave - 2) & 3;
  return std::clamp((octave - 10) * classes_per_octave + quarter, 0, spread_classes - 1);
}

// Student's t distribution with 7 degrees of freedom around the fraction of the mean, for a first guess: near
// the normal one, with tails that forgive.
std::array<std::uint32_t, SymbolTable::symbols> first_guess(int spread_class, int fraction) {
  const int octave = spread_class / classes_per_octave + 10;
  const std::int64_t spread = (std::int64_t{9} + 2 * (spread_class % classes_per_octave)) << octave >> 3;
  std::array<std::uint32_t, SymbolTable::symbols> weights{};
  for (int symbol = 1; symbol < SymbolTable::symbols; ++symbol) {
    const std::int64_t distance = 4 * (symbol - 32) - fraction;  // in quarters
    // t = 1 + (distance / spread)^2 / 8.67 with 16 fractional bits
    const std::int64_t ratio =
        (distance * distance << 44) / (spread * spread);  // (distance/4 / spread)^2 << 16
    const std::int64_t t = one + ratio * 100 / 867;
    const std::int64_t inverse = (std::int64_t{1} << 32) / t;  // 2^16 / t
    const std::int64_t square = inverse * inverse >> 16;
    weights[static_cast<std::size_t>(symbol)] = static_cast<std::uint32_t>((square * square >> 16) + 1);
  }
  weights[0] = 1;
  return weights;
}

// What the coder expects of the next code of a matrix: its mean and spread, and the table of probabilities they choose. It
// learns over all matrices of one role; begin() starts each matrix anew but for what was learned. Encoder and decoder call
// expect() and learn() in the same order and so hold the same numbers. Integers alone, in units of 2^-16 of a code where
// nothing else is said.
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

  void begin(std::int64_t columns) {
    columns_.assign(static_cast<std::size_t>(columns), Column{usual_spread_, 0, 0, 0});
    row_ = -1;
    power_ = 12 * columns << 16;
  }

  void begin_row() {
    ++row_;
    for (std::size_t i = 0; i < rates_.size(); ++i) {
      rates_[i] = static_cast<std::int32_t>(2 * one / (2 * std::min(row_, rows_remembered[i]) + 3));
    }
    const std::int64_t mean_power =
        power_ / static_cast<std::int64_t>(columns_.size());  // 16 fractional bits
    gain_ = static_cast<std::int32_t>((step << 32) / (mean_power + 6 * std::int64_t{one}));
    power_ = 0;
    row_distance_ = row_spread_ = 0;
    row_ratio_ = one;
    row_gain_ = one;
    row_product_ = row_square_ = 0;
    input_ = {};
  }

  Expected expect(std::int64_t column) {
    const Column& above = columns_[static_cast<std::size_t>(column)];
    input_[0] = above.slow;
    input_[1] = above.middle;
    input_[2] = above.fast;
    std::int64_t mean = 0;
    for (int i = 0; i < inputs; ++i) mean += std::int64_t{weights_[i]} * input_[i];
    foretold_ = std::clamp<std::int64_t>(mean >> weight_bits, -127 * one, 127 * one);
    expected_ = static_cast<std::int32_t>(
        std::clamp<std::int64_t>(foretold_ * row_gain_ >> 16, -127 * one, 127 * one));
    std::int32_t spread = std::max(scaled(above.spread, row_ratio_), smallest_spread);
    int shift = 0;
    for (; spread >= widest_table; spread >>= 1) ++shift;
    // Quarters: of a code, or of the coarser steps of wide spreads.
    const std::int32_t rounded = (expected_ >> shift) + one / 8;
    return {&table_of(spread, rounded >> 14 & 3), (rounded >> 16) * (1 << shift), shift};
  }

  // The code at the column of the last expect().
  void learn(std::int64_t column, int code) {
    Column& above = columns_[static_cast<std::size_t>(column)];
    const std::int32_t value = code * one;
    const std::int32_t error = value - expected_;
    const std::int32_t distance = std::abs(error);
    const std::int64_t step_error = std::clamp(error, -4 * above.spread, 4 * above.spread) >> 8;
    for (int i = 0; i < inputs; ++i) {
      const std::int64_t input = input_[i] >> 8;
      power_ += input * input;
      const std::int64_t weight = weights_[i] + ((step_error * input * gain_ + (1 << 23)) >> 24);
      weights_[i] =
          static_cast<std::int32_t>(std::clamp<std::int64_t>(weight, -heaviest_weight, heaviest_weight));
    }
    row_distance_ += (distance >> 4) - (row_distance_ >> 7);
    row_spread_ += (above.spread >> 4) - (row_spread_ >> 7);
    row_product_ += (foretold_ >> 8) * (value >> 8) - (row_product_ >> 10);
    row_square_ += (foretold_ >> 8) * (foretold_ >> 8) - (row_square_ >> 10);
    // Divisions are slow: every 16 columns are enough.
    if ((column & 15) == 15) {
      row_ratio_ = static_cast<std::int32_t>(std::clamp<std::int64_t>(
          ((row_distance_ + usual_distance) << 16) / (row_spread_ + usual_distance), one / 8, 8 * one));
      row_gain_ = std::clamp<std::int64_t>(
          ((row_product_ + usual_square) << 16) / (row_square_ + usual_square), 0, 4 * one);
    }
    usual_spread_ += (distance - usual_spread_) >> 11;
    above.spread += scaled(distance - above.spread, rates_[0]);
    above.slow += scaled(std::int64_t{value} - above.slow, rates_[1]);
    above.middle += scaled(std::int64_t{value} - above.middle, rates_[2]);
    above.fast += scaled(std::int64_t{value} - above.fast, rates_[3]);
    input_[3] = value;
  }

 private:
  // Of what was seen above in a column.
  struct Column {
    std::int32_t spread = 0;                      // mean distance from what was expected
    std::int32_t slow = 0, middle = 0, fast = 0;  // means over about 200, 24 and 6 rows
  };
  static constexpr int inputs = 4;  // the three means of the column, the code to the left

  // Probabilities by spread and fraction of the mean, in quarters of a code: 0 to 3.
  SymbolTable& table_of(std::int32_t spread, int fraction) {
    const int spread_class = class_of(spread);
    SymbolTable& table = tables_[static_cast<std::size_t>(4 * spread_class + fraction)];
    if (!table.started()) table.start(first_guess(spread_class, fraction), prior_strength);
    return table;
  }

  std::array<SymbolTable, 4 * spread_classes> tables_;
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

// Codes of a block, so that coding needs little memory. A block ends only between codes.
constexpr std::int64_t block_codes = std::int64_t{1} << 20;
constexpr int escape_bits = 8;

// Calls row(model, first code of the row, columns) for all rows.
template <typename Row>
void for_rows(std::span<const CodeMatrix> matrices, Row&& row) {
  std::map<int, CodeModel> models;  // by role
  std::size_t first = 0;
  for (const CodeMatrix& matrix : matrices) {
    CodeModel& model = models[matrix.role];
    model.begin(matrix.columns);
    for (std::int64_t i = 0; i < matrix.rows; ++i) {
      model.begin_row();
      row(model, first, matrix.columns);
      first += static_cast<std::size_t>(matrix.columns);
    }
  }
}

void encode(RansEncoder& out, const CodeModel::Expected& expected, int code) {
  const int difference = code - expected.mean;
  const int symbol = (difference >> expected.shift) + 32;
  if (symbol > CodeModel::escape && symbol < SymbolTable::symbols) {
    out.put(expected.table->places(symbol));
    expected.table->count(symbol);
    out.put_bits(static_cast<std::uint32_t>(difference), expected.shift);
  } else {
    out.put(expected.table->places(CodeModel::escape));
    expected.table->count(CodeModel::escape);
    out.put_bits(static_cast<std::uint32_t>(code), escape_bits);
  }
}

int decode(RansDecoder& in, const CodeModel::Expected& expected) {
  const int symbol = expected.table->symbol_at(in.place());
  in.take(expected.table->places(symbol));
  expected.table->count(symbol);
  if (symbol == CodeModel::escape) return static_cast<std::int8_t>(in.take_bits(escape_bits));
  const int low = static_cast<int>(in.take_bits(expected.shift));
  return expected.mean + (symbol - 32) * (1 << expected.shift) + low;
}

}  // namespace

std::string encode_codes(std::span<const std::int8_t> codes, std::span<const CodeMatrix> matrices) {
  std::string bytes;
  RansEncoder out;
  std::int64_t in_block = 0;
  for_rows(matrices, [&](CodeModel& model, std::size_t first, std::int64_t columns) {
    for (std::int64_t j = 0; j < columns; ++j) {
      if (in_block++ == block_codes) {
        out.finish(bytes);
        in_block = 1;
      }
      const int code = codes[first + static_cast<std::size_t>(j)];
      encode(out, model.expect(j), code);
      model.learn(j, code);
    }
  });
  if (in_block > 0) out.finish(bytes);
  return bytes;
}

std::vector<std::int8_t> decode_codes(std::string_view bytes, std::span<const CodeMatrix> matrices) {
  std::vector<std::int8_t> codes;
  RansDecoder in;
  std::int64_t left = 0;
  for_rows(matrices, [&](CodeModel& model, std::size_t first, std::int64_t columns) {
    codes.resize(first + static_cast<std::size_t>(columns));
    for (std::int64_t j = 0; j < columns; ++j) {
      if (left-- == 0) {
        in.finish();
        in = RansDecoder(bytes);
        left = block_codes - 1;
      }
      const int code = decode(in, model.expect(j));
      if (code < -128 || code > 127) throw std::runtime_error("is corrupt");
      codes[first + static_cast<std::size_t>(j)] = static_cast<std::int8_t>(code);
      model.learn(j, code);
    }
  });
  in.finish();
  if (!bytes.empty()) throw std::runtime_error(fmt::format("has {} bytes too many", bytes.size()));
  return codes;
}

}  // namespace mulligan
