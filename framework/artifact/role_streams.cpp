#include "framework/artifact/role_streams.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>
#include <stdexcept>

namespace mulligan {
namespace {

struct RoleName {
  std::string_view word, suffix;
};
constexpr std::array<RoleName, code_role_count> roles = {{{"embedding", "tok_emb.weight"},
                                                          {"k", ".attn.c_k.weight"},
                                                          {"q", ".attn.c_q.weight"},
                                                          {"v", ".attn.c_v.weight"},
                                                          {"attention_output", ".attn.proj.weight"},
                                                          {"mlp_up", ".mlp.fc.weight"},
                                                          {"mlp_down", ".mlp.proj.weight"},
                                                          {"other", ""}}};

}  // namespace

CodeRole code_role(std::string_view name) {
  std::size_t role = 0;
  while (!name.ends_with(roles[role].suffix)) ++role;  // the last one ends every name
  return static_cast<CodeRole>(role);
}

std::string_view code_role_word(CodeRole role) {
  return roles[static_cast<std::size_t>(role)].word;
}

namespace {

// Sum of |a - b|, given up as soon as it reaches `limit`.
std::int64_t distance(const std::int8_t* a, const std::int8_t* b, std::int64_t columns, std::int64_t limit) {
  constexpr std::int64_t stretch = 128;
  std::int64_t sum = 0;
  for (std::int64_t begin = 0; begin < columns && sum < limit; begin += stretch) {
    const std::int64_t end = std::min(columns, begin + stretch);
    int part = 0;
    for (std::int64_t j = begin; j < end; ++j) part += std::abs(a[j] - b[j]);
    sum += part;
  }
  return sum;
}

}  // namespace

bool orders_rows(CodeStreams streams, CodeRole role) {
  if (streams == CodeStreams::role_all_ordered) return true;
  return streams == CodeStreams::role_ordered &&
         (role == CodeRole::embedding || role == CodeRole::q || role == CodeRole::mlp_up);
}

std::vector<std::uint16_t> neighbour_order(std::span<const std::int8_t> codes, std::int64_t columns) {
  const std::int64_t rows = static_cast<std::int64_t>(codes.size()) / columns;
  std::vector<std::int32_t> left(static_cast<std::size_t>(rows - 1));  // ascending
  std::iota(left.begin(), left.end(), 1);
  std::vector<std::uint16_t> order{0};
  while (!left.empty()) {
    const std::int8_t* last = codes.data() + order.back() * columns;
    std::int64_t nearest = INT64_MAX;
    auto best = left.begin();
    for (auto row = left.begin(); row != left.end(); ++row) {
      const std::int64_t d = distance(last, codes.data() + *row * columns, columns, nearest);
      if (d < nearest) {
        nearest = d;
        best = row;
      }
    }
    order.push_back(static_cast<std::uint16_t>(*best));
    left.erase(best);
  }
  return order;
}

std::string transposed_codes(std::span<const std::int8_t> codes, std::int64_t columns,
                             std::span<const std::uint16_t> order) {
  const auto width = static_cast<std::size_t>(columns), rows = codes.size() / width;
  std::string out(codes.size(), '\0');
  for (std::size_t i = 0; i < rows; ++i) {
    const std::size_t from = order.empty() ? i : order[i];
    for (std::size_t j = 0; j < width; ++j) out[j * rows + i] = static_cast<char>(codes[from * width + j]);
  }
  return out;
}

std::vector<std::int8_t> untransposed_codes(std::string_view bytes, std::int64_t columns,
                                            std::span<const std::uint16_t> order) {
  const auto width = static_cast<std::size_t>(columns), rows = bytes.size() / width;
  std::vector<bool> seen(rows);
  for (const std::uint16_t row : order) {
    if (row >= rows || seen[row]) throw std::runtime_error("has an order of rows that is none");
    seen[row] = true;
  }
  std::vector<std::int8_t> codes(bytes.size());
  for (std::size_t i = 0; i < rows; ++i) {
    const std::size_t to = order.empty() ? i : order[i];
    for (std::size_t j = 0; j < width; ++j)
      codes[to * width + j] = static_cast<std::int8_t>(bytes[j * rows + i]);
  }
  return codes;
}

}  // namespace mulligan
