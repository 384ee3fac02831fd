#include "plugins/backends/cuda/attention/attention_library.h"

#include <mulligan/plugin.hpp>

#include <utility>

namespace mulligan::cuda {

namespace {

std::string dtype_word(mlg_dtype dtype) {
  return dtype == MLG_BF16 ? "bf16" : dtype == MLG_F16 ? "f16" : "f32";
}

}  // namespace

std::string describe(const AttentionShape& s) {
  const auto number = [](std::int64_t value) { return std::to_string(value); };
  const std::string limit = s.packed ? "up to " : "";
  return dtype_word(s.dtype) + " attention, " + (s.backward ? "backward" : "forward") + ", of " +
         number(s.tokens) + " tokens in " + limit + number(s.rows) + " rows of " + limit + number(s.longest) +
         ", " + number(s.query_heads) + " heads over " + number(s.kv_heads) + " of width " + number(s.width);
}

AttentionLibrary::~AttentionLibrary() {
  for (const auto& [bytes, address] : workspaces_) device_.free(address);
}

bool AttentionLibrary::wanted(const AttentionShape& shape) {
  if (!choice_.library || (shape.backward && choice_.deterministic) || shape.dtype == MLG_F32) return false;
  const std::string reason = unfit(shape);
  if (!reason.empty()) stand_in(reason, "set backend.attention = \"own\"");
  return reason.empty() && available();
}

std::string AttentionLibrary::unfit(const AttentionShape& shape) {
  constexpr std::int64_t kMostElements = std::int64_t{1} << 31;  // starts are int32
  constexpr std::int64_t kWidths = 16, kWidest = 128;
  const std::string what = dtype_word(shape.dtype) + " attention";
  if (shape.dtype != MLG_BF16) return what + ": the device's library is asked for bf16 alone";
  if (shape.width % kWidths != 0 || shape.width > kWidest) {
    return what + " with heads of width " + std::to_string(shape.width) +
           ": the device's library is asked for multiples of 16 up to 128 alone";
  }
  if (const std::int64_t elements = shape.tokens * shape.query_heads * shape.width;
      elements >= kMostElements) {
    return what + " of " + std::to_string(elements) +
           " elements: the device's library is asked for fewer than 2^31 alone";
  }
  return {};
}

bool AttentionLibrary::available() {
  if (available_) return *available_;
  const std::string missing = device_.attention_missing();
  if (!missing.empty()) stand_in("bf16 attention: " + missing, "or set backend.attention = \"own\"");
  available_ = missing.empty();
  return *available_;
}

void AttentionLibrary::say_once(const std::string& sentence) {
  if (announced_.insert(sentence).second) sdk::log(sdk::LogLevel::warning, sentence);
}

// How much slower: 1.0 to 1.2 s in place of 0.09 for a step of the record, by the work that the own kernel does
// without tensor cores.
void AttentionLibrary::stand_in(const std::string& reason, const std::string& remedy) {
  if (choice_.required) {
    throw std::runtime_error(
        reason +
        "; this run requires the device's library of attention "
        "(run.require_libraries, backend.require_library), for with the own kernel a step "
        "takes about ten times as long: fix that, or set run.require_libraries = false");
  }
  say_once(reason +
           "; the own kernel computes it, without tensor cores: a step that is mostly attention takes "
           "about ten times as long" +
           (remedy.empty() ? "" : " (" + remedy + " to be told no more)"));
}

std::optional<std::size_t> AttentionLibrary::workspace_bytes(const AttentionShape& shape) {
  std::string reason;
  const std::optional<std::size_t> bytes = device_.attention_workspace_bytes(shape, reason);
  if (!bytes) stand_in(describe(shape) + ": " + reason, "");
  return bytes;
}

void AttentionLibrary::expect(const AttentionShape& shape) {
  if (plans_.contains(shape) || !expected_.insert(shape).second) return;
  device_.expect_attention(shape);
}

void AttentionLibrary::finish_expected() {
  for (const AttentionShape& shape : std::exchange(expected_, {})) plan(shape);
}

Attention* AttentionLibrary::plan(const AttentionShape& shape) {
  const auto known = plans_.find(shape);
  if (known != plans_.end()) return known->second.get();
  std::string reason;
  std::unique_ptr<Attention> plan = device_.attention(shape, reason);
  if (plan) {
    sdk::log(sdk::LogLevel::info, "the device's library computes " + describe(shape));
  } else {
    stand_in(describe(shape) + ": " + reason, "");
  }
  return plans_.emplace(shape, std::move(plan)).first->second.get();
}

void AttentionLibrary::leave_to_own_kernel() {
  say_once(
      "model.attention asks for a softmax that the device's library cannot compute: the own kernel, which "
      "uses no tensor cores, computes attention's forward pass");
}

void AttentionLibrary::leave(const AttentionShape& shape) {
  stand_in(describe(shape) + ": the device's library is asked for at most 32,768 segments",
           "set data.documents = \"joined\"");
}

void* AttentionLibrary::more_workspace(const AttentionShape& shape, std::size_t bytes) {
  if (workspaces_.empty() || workspaces_.back().first < bytes) {
    workspaces_.emplace_back(bytes, device_.allocate(bytes));
    say_once(describe(shape) + ": its plan takes " + std::to_string(bytes) +
             " bytes of workspace, more than was reserved; they are allocated now");
  }
  return workspaces_.back().second;
}

}  // namespace mulligan::cuda
