// What a matrix does in the model, by its name: matrices of one role have codes of one kind.
#pragma once

#include <string_view>

namespace mulligan {

// The order is that of the streams of public record runs; the numbers are part of the artifact's format.
enum class CodeRole { embedding, k, q, v, attention_output, mlp_up, mlp_down, other };
inline constexpr int code_role_count = 8;

// "tok_emb.weight": embedding; "blocks.3.attn.c_k.weight": k; a name that is none of these: other.
CodeRole code_role(std::string_view name);
// "embedding", "k", "q", "v", "attention_output", "mlp_up", "mlp_down", "other".
std::string_view code_role_word(CodeRole role);

}  // namespace mulligan
