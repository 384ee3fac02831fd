#include "framework/ranks/roll_call.h"

#include <algorithm>
#include <set>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/printable.h"
#include "framework/ranks/handshake.h"
#include "framework/ranks/wire.h"

namespace mulligan {
namespace {

std::string name(const std::vector<RollCallEntry>& ranks, std::size_t rank) {
  return RankName{static_cast<int>(rank), ranks[rank].host, ranks[rank].process}.text();
}

std::string quoted(const std::string& value) {
  constexpr std::size_t longest = 200;
  return value.size() <= longest ? fmt::format("'{}'", printable(value))
                                 : fmt::format("'{}...'", printable(value.substr(0, longest)));
}

std::string value_of(const RollCallEntry& entry, const std::string& what) {
  const auto found = std::ranges::find(entry.facts, what, &Fact::what);
  return found == entry.facts.end() ? "(not set)" : found->value;
}

}  // namespace

std::optional<std::string> first_difference(const std::vector<RollCallEntry>& ranks) {
  std::vector<std::string> stated;  // by any rank, rank 0 first
  std::set<std::string> seen;
  for (const RollCallEntry& entry : ranks) {
    for (const Fact& fact : entry.facts) {
      if (seen.insert(fact.what).second) stated.push_back(fact.what);
    }
  }
  for (const std::string& what : stated) {
    const std::string first = value_of(ranks[0], what);
    for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
      const std::string other = value_of(ranks[rank], what);
      if (first == other) continue;
      return fmt::format("{} and {} differ in {}: {} and {}; start all ranks with the same.", name(ranks, 0),
                         name(ranks, rank), printable(what), quoted(first), quoted(other));
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
    return first_difference(ranks).value_or(
        "ranks differ in the number of their plugin files or settings; start all ranks with the same.");
  });
  if (!sentence.empty()) throw config_error("{}", sentence);
}

}  // namespace mulligan
