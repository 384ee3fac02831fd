#include "framework/adapters/row_guard.h"

#include <algorithm>

#include "framework/core/error.h"

namespace mulligan {
namespace {

// Whether the call reads what it writes.
bool accumulates(const Call& call) {
  return std::ranges::any_of(call.attributes, [](const Attribute& one) {
    return (one.name == "beta" || one.name.starts_with("accumulate")) && one.value != 0;
  });
}

}  // namespace

RowGuard::Kind RowGuard::kind_held(const Graph& graph, Value value) const {
  const auto found = kinds_.find(graph.root(value).id);
  return found == kinds_.end() ? Kind::unwritten : found->second;
}

void RowGuard::view(const Graph& graph, Value value, std::int64_t offset, const TensorType& type) const {
  if (kind_held(graph, value) == Kind::adapter) return;
  if (offset == 0 && type.elements() == graph.type(value).elements()) return;
  throw run_error(
      "the tap {}: a view from element {} on of {} would cut or shift tokens, so that a score could read a "
      "later one; adapters see whole windows only",
      tap_, offset, graph.type(value).text());
}

// [B*R, ...], or [B, R, ...] where the rows of a window need not be counted by the first dimension.
void RowGuard::require_rows(const Graph& graph, Value value, bool first_counts_all,
                            const std::string& kernel) const {
  const TensorType& type = graph.type(value);
  const std::int64_t rows = documents_ * tokens_;
  const bool all = type.rank >= 2 && type.dims[0] == rows;
  const bool by_window = type.rank >= 3 && type.dims[0] == documents_ && type.dims[1] == tokens_;
  if (all || (by_window && !first_counts_all)) return;
  throw run_error(
      "the tap {}: {} gets tokens as {}, but must see them as [{}, ...]{}: any other shape mixes rows, so "
      "that a score could read a later token",
      tap_, kernel, type.text(), rows,
      first_counts_all ? "" : fmt::format(" or [{}, {}, ...]", documents_, tokens_));
}

void RowGuard::write(const Graph& graph, Value value, bool tokens, const std::string& kernel) {
  Kind& kind = kinds_[graph.root(value).id];
  if (kind == Kind::adapter) {
    throw run_error(
        "the tap {}: {} writes into an adapter while a window is scored; only the optimiser changes "
        "adapters, after the scores are booked",
        tap_, kernel);
  }
  if (kind != Kind::tokens) kind = tokens ? Kind::tokens : Kind::plain;
}

// c = op(a) op(b): by rank 2 or 3 with the rows of a window second, or one small matmul per token.
void RowGuard::check_product(const Graph& graph, const Call& call) const {
  const Value a = call.arguments[0], b = call.arguments[1];
  const std::int64_t rows = documents_ * tokens_;
  const auto batch_of_rows = [&](Value value) {
    return graph.type(value).rank == 3 && graph.type(value).dims[0] == rows;
  };
  // One matmul for each token, on its own numbers.
  if (std::ranges::all_of(call.arguments, batch_of_rows)) return;
  if (holds_tokens(graph, b) || (holds_tokens(graph, a) && call.attribute("transpose_a") != 0)) {
    throw run_error(
        "the tap {}: matmul sums over tokens ({} by {}), so that a score could read a later one; in the "
        "forward pass tokens stand on the left, not transposed",
        tap_, graph.type(a).text(), graph.type(b).text());
  }
  const auto require = [&](Value value) {
    if (holds_tokens(graph, value)) require_rows(graph, value, graph.type(value).rank == 2, "matmul");
  };
  require(a);
  require(call.arguments[2]);
}

void RowGuard::unknown_call(const Graph& graph, const Call& call) {
  unknown_kernels_ = true;
  const bool tokens =
      std::ranges::any_of(call.arguments, [&](Value v) { return v && holds_tokens(graph, v); });
  for (const Value value : call.arguments) {
    if (!value || kind_held(graph, value) == Kind::adapter) continue;
    if (holds_tokens(graph, value)) require_rows(graph, value, false, call.kernel);
    write(graph, value, tokens, call.kernel);
  }
}

void RowGuard::call(const Graph& graph, const Call& call) {
  const std::string& kernel = call.kernel;
  const std::vector<Value>& arguments = call.arguments;
  const KernelRows* rows = rows_of_kernel(kernel);
  if (!rows) return unknown_call(graph, call);
  if (rows->rule == RowRule::mixing || rows->rule == RowRule::causal) {
    throw run_error(
        "the tap {}: {} mixes rows, so that a score could read a later token; adapters may record it in the "
        "backward pass only",
        tap_, kernel);
  }
  if (arguments.size() != rows->arguments.size()) {
    throw run_error("the tap {}: {} takes {} arguments, not {}", tap_, kernel, rows->arguments.size(),
                    arguments.size());
  }
  const bool adds = accumulates(call);
  bool tokens = false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Value value = arguments[i];
    const char mode = rows->arguments[i];
    const bool reads = mode == 'i' || mode == 'p' || mode == 'u' || (mode == 'a' && adds);
    if (!value || !reads) continue;
    if (kind_held(graph, value) == Kind::unwritten) {
      throw run_error(
          "the tap {}: {} reads a scratch value that nothing has written, and so whatever lies there", tap_,
          kernel);
    }
    if (!holds_tokens(graph, value)) continue;
    if (mode == 'p') {
      throw run_error(
          "the tap {}: {} gets tokens ({}) where a parameter belongs, which mixes rows; give it an adapter",
          tap_, kernel, graph.type(value).text());
    }
    tokens = true;
  }
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const char mode = rows->arguments[i];
    if (!arguments[i] || mode == 'i' || mode == 'p') continue;
    write(graph, arguments[i], tokens, kernel);
  }
  if (rows->rule == RowRule::matmul) return check_product(graph, call);
  for (const Value value : arguments) {
    if (value && holds_tokens(graph, value))
      require_rows(graph, value, rows->rule == RowRule::row_wise, kernel);
  }
}

}  // namespace mulligan
