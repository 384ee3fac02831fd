#include "plugins/backends/cuda/attention/attention_library.h"

#include <mulligan/plugin.hpp>

#include <utility>

namespace mulligan::cuda {

std::string describe(const AttentionShape& s) {
  const auto number = [](std::int64_t value) { return std::to_string(value); };
  const std::string limit = s.packed ? "up to " : "";
  return std::string(s.dtype == MLG_BF16  ? "bf16"
                     : s.dtype == MLG_F16 ? "f16"
                                          : "f32") +
         " attention, " + (s.backward ? "backward" : "forward") + ", of " + number(s.tokens) + " tokens in " +
         limit + number(s.rows) + " rows of " + limit + number(s.longest) + ", " + number(s.query_heads) +
         " heads over " + number(s.kv_heads) + " of width " + number(s.width);
}

bool AttentionLibrary::wanted(const AttentionShape& shape) {
  if (!choice_.library || (shape.backward && choice_.deterministic)) return false;
  constexpr std::int64_t kMostElements = std::int64_t{1} << 31;  // starts are int32
  return shape.dtype == MLG_BF16 && shape.width % 16 == 0 && shape.width <= 128 &&
         shape.tokens * shape.query_heads * shape.width < kMostElements && available();
}

bool AttentionLibrary::available() {
  if (available_) return *available_;
  const std::string missing = device_.attention_missing();
  if (!missing.empty()) {
    sdk::log(sdk::LogLevel::info,
             "attention is computed by the own kernel: " + missing + ", or set backend.attention = \"own\"");
  }
  available_ = missing.empty();
  return *available_;
}

std::optional<std::size_t> AttentionLibrary::workspace_bytes(const AttentionShape& shape) {
  std::string reason;
  const std::optional<std::size_t> bytes = device_.attention_workspace_bytes(shape, reason);
  if (!bytes) announce(shape, reason);
  return bytes;
}

void AttentionLibrary::expect(const AttentionShape& shape) {
  if (!plans_.contains(shape)) device_.expect_attention(shape);
}

Attention* AttentionLibrary::plan(const AttentionShape& shape) {
  const auto known = plans_.find(shape);
  if (known != plans_.end()) return known->second.get();
  std::string reason;
  std::unique_ptr<Attention> plan = device_.attention(shape, reason);
  if (plan) {
    sdk::log(sdk::LogLevel::info, "the device's library computes " + describe(shape));
  } else {
    announce(shape, reason);
  }
  return plans_.emplace(shape, std::move(plan)).first->second.get();
}

void AttentionLibrary::failed(const AttentionFailure& failure) {
  if (!choice_.fallback) {
    throw std::runtime_error(std::string(failure.what()) +
                             "; set backend.attention = \"own\" to compute attention by the own kernel, or "
                             "backend.attention_fallback = true to do so for what fails");
  }
  const std::string sentence =
      std::string(failure.what()) + "; the own kernel computes it from now on (backend.attention_fallback)";
  if (announced_.insert(sentence).second) sdk::log(sdk::LogLevel::warning, sentence);
}

void AttentionLibrary::leave_to_own_kernel() {
  const std::string sentence =
      "model.attention asks for a softmax that the device's library cannot compute: the own kernel, which "
      "uses no tensor "
      "cores, computes attention's forward pass";
  if (announced_.insert(sentence).second) sdk::log(sdk::LogLevel::warning, sentence);
}

void AttentionLibrary::announce(const AttentionShape& shape, const std::string& reason) {
  const std::string sentence = describe(shape) + ": " + reason + "; the own kernel computes it";
  if (announced_.insert(sentence).second) sdk::log(sdk::LogLevel::warning, sentence);
}

}  // namespace mulligan::cuda
