// Replaces calls of a finished graph one at a time, and only if nothing else changes.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <string_view>
#include <vector>

#include "framework/graph/call_access.h"
#include "framework/graph/graph.h"

namespace mulligan {

// A call's first arguments by name: `Arguments` is a struct of Values in the order of the signature.
template <typename Arguments>
Arguments named(const Call& call) {
  std::array<Value, sizeof(Arguments) / sizeof(Value)> values;
  std::copy_n(call.arguments.begin(), values.size(), values.begin());
  return std::bit_cast<Arguments>(values);
}

// Calls keep their numbers until apply(). A value stands for the tensor that it is a part of (Graph::root). A kernel that
// `access` does not know counts as reading and writing all of its arguments.
class GraphRewrite {
 public:
  // The calls before `split` may run apart from those from it on. `graph` must not change before apply().
  GraphRewrite(const Graph& graph, const CallAccess& access, std::size_t split);

  const Call& call(std::size_t at) const { return calls_[at]; }
  // Whether call `at` is still there, and one of `kernel`.
  bool is(std::size_t at, std::string_view kernel) const { return live_[at] && calls_[at].kernel == kernel; }
  // 0 if the call has no such attribute.
  double attribute(std::size_t at, std::string_view name) const { return calls_[at].attribute(name); }
  bool is_scratch(Value value) const;
  // The first call after `at` that mentions the value.
  std::optional<std::size_t> next(Value value, std::size_t at) const;
  // The call that writes the value, if it is the only one.
  std::optional<std::size_t> only_writer(Value value) const;
  // Whether a call strictly between the two writes the value.
  bool written_between(Value value, std::size_t first, std::size_t last) const;
  // Whether the value outlasts the graph or is kept, or a call other than `members` mentions it.
  bool needed_outside(Value value, const std::vector<std::size_t>& members) const;

  // Puts `fused` in the place of the last of `members`, which are in ascending order, and removes the others. Does
  // nothing and returns false in three cases: the change would affect what another call reads or leaves; the members
  // lie on both sides of the split; or `fused` would write a tensor that another argument is a part of. The third case
  // is allowed if that argument is the same value and only read, since some kernels permit this.
  bool replace(const std::vector<std::size_t>& members, Call fused);

  // Writes the rewritten calls into `graph`. Returns the number of the second part's first call.
  std::size_t apply(Graph& graph) const;

 private:
  struct Use {
    std::uint32_t root;
    Access access;
  };
  std::vector<Use> uses_of(const Call& call) const;
  bool mentions(std::size_t at, Value value) const;
  bool writes(std::size_t at, std::uint32_t root) const;
  bool may_move(std::size_t from, std::size_t to, const std::vector<std::size_t>& members) const;
  bool clashes(const Call& fused) const;

  const Graph& graph_;
  const CallAccess& access_;
  std::size_t split_;
  std::vector<Call> calls_;
  std::vector<bool> live_;
  std::vector<std::vector<Use>> uses_;            // by call
  std::vector<std::vector<std::size_t>> places_;  // by root: calls that mention or mentioned it, rising
};

}  // namespace mulligan
