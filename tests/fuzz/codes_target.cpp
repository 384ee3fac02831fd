// Input: a first byte; 'd': shapes, then bytes that claim to be coded codes of these shapes. Anything else:
// shapes, then codes, which must come back from the coder; then one byte of what was coded is changed, which
// must be refused or read. Shapes: the number of matrices, then rows, columns and role of each, a byte each
// (taken modulo what keeps a run short).
#include "framework/artifact/code_coder.h"

#include <algorithm>

#include "tests/fuzz/fuzz_target.h"

namespace mulligan::fuzz {
namespace {

std::uint8_t take_byte(std::string_view& input) {
  if (input.empty()) return 0;
  const auto byte = static_cast<std::uint8_t>(input.front());
  input.remove_prefix(1);
  return byte;
}

void decode(std::string_view bytes, const std::vector<CodeMatrix>& matrices) {
  try {
    decode_codes(bytes, matrices);
  } catch (const std::runtime_error&) {  // as it may
  }
}

}  // namespace

void codes(std::string_view input) {
  const bool coded = take_byte(input) == 'd';
  std::vector<CodeMatrix> matrices;
  std::size_t count = 0;
  for (int left = take_byte(input) % 8; left > 0; --left) {
    const std::int64_t rows = 1 + take_byte(input) % 16, columns = 1 + take_byte(input) % 32;
    matrices.push_back({rows, columns, take_byte(input) % 16});
    count += static_cast<std::size_t>(rows * columns);
  }
  if (coded) return decode(input, matrices);
  std::vector<std::int8_t> codes(count);
  for (std::size_t i = 0; i < std::min(count, input.size()); ++i)
    codes[i] = static_cast<std::int8_t>(input[i]);
  std::string bytes = encode_codes(codes, matrices);
  require(decode_codes(bytes, matrices) == codes, "codes do not come back");
  if (bytes.empty()) return;
  const std::size_t at = count % bytes.size();
  bytes[at] = static_cast<char>(bytes[at] ^ (1 << count / 7 % 8));
  decode(bytes, matrices);
}

}  // namespace mulligan::fuzz
