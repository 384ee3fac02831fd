// RowGuard keeps the rows of a tap apart in a plugin's recordings for a program that scores.
//
// Values are of three kinds: those that hold a row for each token; those that hold none (adapters, and values made of them
// alone); and scratch that was not written yet. A recording may not cut, shift or reshape tokens, move them between rows,
// write into an adapter, or read what was not written. So no score can depend on a later token, whatever the adapters hold.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "framework/graph/graph.h"
#include "framework/graph/row_rules.h"

namespace mulligan {

class RowGuard {
 public:
  // `tap`: for messages. Rows are those of `documents` windows of `tokens` tokens each.
  RowGuard(std::string tap, std::int64_t documents, std::int64_t tokens)
      : tap_(std::move(tap)), documents_(documents), tokens_(tokens) {}

  // The values that the plugin was given.
  void hand_tokens(const Graph& graph, Value value) { kinds_[graph.root(value).id] = Kind::tokens; }
  void hand_adapter(const Graph& graph, Value value) { kinds_[graph.root(value).id] = Kind::adapter; }

  // Throws run_error if a view of `value` from element `offset` on would cut or shift tokens.
  void view(const Graph& graph, Value value, std::int64_t offset, const TensorType& type) const;
  // Throws run_error where the call could carry a token into another row.
  void call(const Graph& graph, const Call& call);

  // Whether the recording has a kernel that the table of core kernels lacks. Then nothing is proved.
  bool unknown_kernels() const { return unknown_kernels_; }

 private:
  enum class Kind { unwritten, plain, adapter, tokens };
  Kind kind_held(const Graph& graph, Value value) const;
  bool holds_tokens(const Graph& graph, Value value) const { return kind_held(graph, value) == Kind::tokens; }
  void require_rows(const Graph& graph, Value value, bool first_counts_all, const std::string& kernel) const;
  void check_product(const Graph& graph, const Call& call) const;
  void write(const Graph& graph, Value value, bool tokens, const std::string& kernel);
  void unknown_call(const Graph& graph, const Call& call);

  std::string tap_;
  std::int64_t documents_, tokens_;
  std::map<std::uint32_t, Kind> kinds_;  // by root
  bool unknown_kernels_ = false;
};

}  // namespace mulligan
