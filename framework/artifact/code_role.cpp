#include "framework/artifact/code_role.h"

#include <array>

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

}  // namespace mulligan
