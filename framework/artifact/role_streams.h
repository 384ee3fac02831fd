// Codes as public record runs hand them to a general compressor: by role, each matrix transposed, perhaps
// with its rows in the order of nearest neighbours.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/config/stored_formats.h"

namespace mulligan {

// What a matrix does in the model, by its name: matrices of one role have codes of one kind.

// The order is that of the streams of public record runs; the numbers are part of the artifact's format.
enum class CodeRole { embedding, k, q, v, attention_output, mlp_up, mlp_down, other };
inline constexpr int code_role_count = 8;

// "tok_emb.weight": embedding; "blocks.3.attn.c_k.weight": k; a name that is none of these: other.
CodeRole code_role(std::string_view name);
// "embedding", "k", "q", "v", "attention_output", "mlp_up", "mlp_down", "other".
std::string_view code_role_word(CodeRole role);

// Rows are stored as u16.
inline constexpr std::uint64_t most_ordered_rows = std::uint64_t{1} << 16;

// Whether the rows of a role are put in order.
bool orders_rows(CodeStreams streams, CodeRole role);

// Starts at row 0; then always the row not yet taken with the smallest L1 distance to the last one, of equal
// ones the first. codes [rows, columns] row-major, 1 to most_ordered_rows rows. Quadratic in the rows.
std::vector<std::uint16_t> neighbour_order(std::span<const std::int8_t> codes, std::int64_t columns);

// [rows, columns] to [columns, rows] with the rows in the given order; empty: as they are.
std::string transposed_codes(std::span<const std::int8_t> codes, std::int64_t columns,
                             std::span<const std::uint16_t> order);
// The reverse. Throws std::runtime_error with a reason that reads on from the name of what was read when the
// order does not name every row once.
std::vector<std::int8_t> untransposed_codes(std::string_view bytes, std::int64_t columns,
                                            std::span<const std::uint16_t> order);

}  // namespace mulligan
