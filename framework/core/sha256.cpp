#include "framework/core/sha256.h"

#include <fmt/format.h>
#include <openssl/evp.h>

namespace mulligan {

Sha256::Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
  EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr);
}

void Sha256::update(std::string_view bytes) {
  EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size());
}

void Sha256::update(std::span<const std::byte> bytes) {
  EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size());
}

std::string Sha256::digest() {
  std::string digest(32, '\0');
  EVP_DigestFinal_ex(context_.get(), reinterpret_cast<unsigned char*>(digest.data()), nullptr);
  return digest;
}

std::string Sha256::hex() {
  std::string text;
  for (const char byte : digest()) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

}  // namespace mulligan
