#include "framework/artifact/code_coder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <stdexcept>

#include "framework/artifact/code_model.h"
#include "framework/artifact/rans.h"

namespace mulligan {
namespace {

// Codes of a block, so that coding needs little memory. A block ends only between codes.
constexpr std::int64_t block_codes = std::int64_t{1} << 20;
constexpr int escape_bits = 8;

class Models {
 public:
  CodeModel& of(int role) {
    if (role < 0 || role >= code_roles) throw std::logic_error("a matrix has a role that there is not");
    auto& model = models_[static_cast<std::size_t>(role)];
    if (!model) model = std::make_unique<CodeModel>();
    return *model;
  }

 private:
  std::array<std::unique_ptr<CodeModel>, code_roles> models_;
};

// Calls row(model, first code of the row, columns) for all rows.
template <typename Row>
void for_rows(std::span<const CodeMatrix> matrices, Row&& row) {
  Models models;
  std::size_t first = 0;
  for (const CodeMatrix& matrix : matrices) {
    CodeModel& model = models.of(matrix.role);
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
