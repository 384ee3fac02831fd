#include "framework/ranks/roll_call.h"

#include <algorithm>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/printable.h"
#include "framework/ranks/handshake.h"
#include "framework/ranks/wire.h"

namespace mulligan {
namespace {

constexpr const char* not_set = "(not set)";

std::string name(const std::vector<RollCallEntry>& ranks, std::size_t rank) {
  return RankName{static_cast<int>(rank), ranks[rank].host, ranks[rank].process}.text();
}

std::string quoted(const std::string& value) {
  constexpr std::size_t longest = 200;
  return value.size() <= longest ? fmt::format("'{}'", printable(value))
                                 : fmt::format("'{}...'", printable(value.substr(0, longest)));
}

// What a rank states of `what`. Ranks of one build state nearly the same list: it is mostly at `likely`.
const Fact* find(const RollCallEntry& entry, const std::string& what, std::size_t likely) {
  if (likely < entry.facts.size() && entry.facts[likely].what == what) return &entry.facts[likely];
  const auto found = std::ranges::find(entry.facts, what, &Fact::what);
  return found == entry.facts.end() ? nullptr : &*found;
}

// Between rank 0 and another, in a fact that either of them states.
std::optional<std::string> difference_in(const std::vector<RollCallEntry>& ranks, std::size_t rank,
                                         const std::string& what, const Fact* first, const Fact* own) {
  const std::string value = first ? first->value : not_set, other = own ? own->value : not_set;
  if (value == other) return std::nullopt;
  return fmt::format("{} and {} differ in {}: {} and {}; start all ranks with the same.", name(ranks, 0),
                     name(ranks, rank), printable(what), quoted(value), quoted(other));
}

}  // namespace

std::optional<std::string> first_difference(const std::vector<RollCallEntry>& ranks) {
  for (std::size_t fact = 0; !ranks.empty() && fact < ranks[0].facts.size(); ++fact) {
    const Fact& first = ranks[0].facts[fact];
    for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
      const Fact* own = find(ranks[rank], first.what, fact);
      if (auto sentence = difference_in(ranks, rank, first.what, &first, own)) return sentence;
    }
  }
  for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
    for (const Fact& own : ranks[rank].facts) {
      if (find(ranks[0], own.what, 0)) continue;
      if (auto sentence = difference_in(ranks, rank, own.what, nullptr, &own)) return sentence;
    }
  }
  return std::nullopt;
}

void call_roll(HostGroup& group, std::vector<Fact> facts) {
  const RankName own = own_name(group.rank());
  const RollCallEntry entry{own.host, own.process, std::move(facts)};
  const std::string digest = sha256_hex(to_wire(RollCallEntry{"", 0, entry.facts}));
  const auto all_agree = [&](const std::vector<std::string>& digests) {
    return std::string(std::ranges::count(digests, digest) == std::ssize(digests) ? "yes" : "");
  };
  if (!group.consult(digest, all_agree).empty()) return;
  const std::string sentence = group.consult(to_wire(entry), [](const std::vector<std::string>& texts) {
    std::vector<RollCallEntry> ranks;
    for (const std::string& text : texts) ranks.push_back(from_wire<RollCallEntry>(text));
    return first_difference(ranks).value_or("");
  });
  if (!sentence.empty()) throw config_error("{}", sentence);
}

}  // namespace mulligan
