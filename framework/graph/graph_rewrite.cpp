#include "framework/graph/graph_rewrite.h"

namespace mulligan {

GraphRewrite::GraphRewrite(const Graph& graph, const CallAccess& access, std::size_t split)
    : graph_(graph),
      access_(access),
      split_(split),
      calls_(graph.calls().begin(), graph.calls().end()),
      live_(calls_.size(), true),
      places_(graph.value_count() + 1) {
  for (std::size_t at = 0; at < calls_.size(); ++at) {
    uses_.push_back(uses_of(calls_[at]));
    for (const Use& use : uses_[at]) {
      std::vector<std::size_t>& places = places_[use.root];
      if (places.empty() || places.back() != at) places.push_back(at);
    }
  }
}

std::vector<GraphRewrite::Use> GraphRewrite::uses_of(const Call& call) const {
  std::vector<Access> accesses(call.arguments.size(), {true, true});
  if (access_.knows(call.kernel)) accesses = access_.of(call);
  std::vector<Use> uses;
  for (std::size_t i = 0; i < call.arguments.size(); ++i) {
    if (call.arguments[i]) uses.push_back({graph_.root(call.arguments[i]).id, accesses[i]});
  }
  return uses;
}

bool GraphRewrite::is_scratch(Value value) const {
  return graph_.info(value).storage == Graph::Storage::scratch;
}

bool GraphRewrite::mentions(std::size_t at, Value value) const {
  const std::uint32_t root = graph_.root(value).id;
  return live_[at] && std::ranges::any_of(uses_[at], [&](const Use& use) { return use.root == root; });
}

bool GraphRewrite::writes(std::size_t at, std::uint32_t root) const {
  return live_[at] && std::ranges::any_of(
                          uses_[at], [&](const Use& use) { return use.root == root && use.access.written; });
}

std::optional<std::size_t> GraphRewrite::next(Value value, std::size_t at) const {
  for (const std::size_t place : places_[graph_.root(value).id]) {
    if (place > at && mentions(place, value)) return place;
  }
  return {};
}

std::optional<std::size_t> GraphRewrite::only_writer(Value value) const {
  const std::uint32_t root = graph_.root(value).id;
  std::optional<std::size_t> writer;
  for (const std::size_t place : places_[root]) {
    if (!writes(place, root)) continue;
    if (writer) return {};
    writer = place;
  }
  return writer;
}

bool GraphRewrite::written_between(Value value, std::size_t first, std::size_t last) const {
  const std::uint32_t root = graph_.root(value).id;
  return std::ranges::any_of(
      places_[root], [&](std::size_t place) { return place > first && place < last && writes(place, root); });
}

bool GraphRewrite::needed_outside(Value value, const std::vector<std::size_t>& members) const {
  const Graph::ValueInfo& info = graph_.info(graph_.root(value));
  if (info.storage == Graph::Storage::external || info.kept) return true;
  return std::ranges::any_of(places_[graph_.root(value).id], [&](std::size_t place) {
    return mentions(place, value) && std::ranges::find(members, place) == members.end();
  });
}

// Whether the call may run at `to` instead: no call in between sees what it writes or changes what it reads.
bool GraphRewrite::may_move(std::size_t from, std::size_t to, const std::vector<std::size_t>& members) const {
  for (std::size_t between = from + 1; between < to; ++between) {
    if (!live_[between] || std::ranges::find(members, between) != members.end()) continue;
    for (const Use& own : uses_[from]) {
      for (const Use& other : uses_[between]) {
        if (own.root == other.root && (own.access.written || other.access.written)) return false;
      }
    }
  }
  return true;
}

bool GraphRewrite::clashes(const Call& fused) const {
  const std::vector<Access> accesses = access_.of(fused);
  for (std::size_t i = 0; i < fused.arguments.size(); ++i) {
    if (!fused.arguments[i] || !accesses[i].written) continue;
    for (std::size_t j = 0; j < fused.arguments.size(); ++j) {
      if (i == j || !fused.arguments[j]) continue;
      if (graph_.root(fused.arguments[i]) != graph_.root(fused.arguments[j])) continue;
      // The same elements, read before they are written: where the kernel allows it.
      if (accesses[j].written || fused.arguments[i] != fused.arguments[j]) return true;
    }
  }
  return false;
}

bool GraphRewrite::replace(const std::vector<std::size_t>& members, Call fused) {
  const std::size_t last = members.back();
  if (members.front() < split_ && last >= split_) return false;
  for (const std::size_t member : members) {
    if (!may_move(member, last, members)) return false;
  }
  if (clashes(fused)) return false;
  for (const std::size_t member : members) live_[member] = member == last;
  calls_[last] = std::move(fused);
  uses_[last] = uses_of(calls_[last]);
  for (const Use& use : uses_[last]) {
    std::vector<std::size_t>& places = places_[use.root];
    const auto position = std::ranges::lower_bound(places, last);
    if (position == places.end() || *position != last) places.insert(position, last);
  }
  return true;
}

std::size_t GraphRewrite::apply(Graph& graph) const {
  std::vector<Call> left;
  std::size_t split = 0;
  for (std::size_t at = 0; at < calls_.size(); ++at) {
    if (!live_[at]) continue;
    if (at < split_) ++split;
    left.push_back(calls_[at]);
  }
  graph.set_calls(std::move(left));
  return split;
}

}  // namespace mulligan
