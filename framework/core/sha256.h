// The sha256 of bytes that come in pieces. Of a whole file or range: file.h.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace mulligan {

class Sha256 {
 public:
  Sha256();
  void update(std::string_view bytes);
  void update(std::span<const std::byte> bytes);
  // The 32 bytes, and as lower-case hexadecimal. Nothing may be added afterwards.
  std::string digest();
  std::string hex();

 private:
  std::unique_ptr<evp_md_ctx_st, void (*)(evp_md_ctx_st*)> context_;
};

// A digest as sentences show it: its first digits, enough to tell two apart.
inline std::string short_digest(const std::string& sha256) {
  return sha256.empty() ? "none" : sha256.substr(0, 12);
}

}  // namespace mulligan
