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

constexpr const char* not_set = "(not set)";
constexpr std::size_t digest_size = 64;  // hexadecimal digits of a sha256

// Facts as three texts each.
struct EntryMessage {
  std::string host;
  std::uint32_t process = 0;
  std::vector<std::string> texts;
  template <typename Archive>
  void fields(Archive& archive) {
    archive(host), archive(process), archive(texts);
  }
};

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
  const auto counts = [](const Fact* fact) { return fact && fact->rule == Fact::Rule::equal; };
  const std::string value = first ? first->value : not_set, other = own ? own->value : not_set;
  if ((!counts(first) && !counts(own)) || value == other) return std::nullopt;
  return fmt::format("{} and {} differ in {}: {} and {}; start all ranks with the same.", name(ranks, 0),
                     name(ranks, rank), printable(what), quoted(value), quoted(other));
}

// Among the ranks of one machine up to this one.
std::optional<std::string> clash(const std::vector<RollCallEntry>& ranks, std::size_t rank,
                                 std::size_t fact) {
  const Fact* own = find(ranks[rank], ranks[0].facts[fact].what, fact);
  if (!own || own->rule != Fact::Rule::differs_on_host || own->value.empty()) return std::nullopt;
  for (std::size_t other = 0; other < rank; ++other) {
    const Fact* theirs = find(ranks[other], own->what, fact);
    if (ranks[other].host != ranks[rank].host || !theirs || theirs->value != own->value) continue;
    return fmt::format("{} and {} have the same {}, {}; give each rank of a machine its own.",
                       name(ranks, other), name(ranks, rank), printable(own->what), quoted(own->value));
  }
  return std::nullopt;
}

}  // namespace

std::string roll_call_bytes(const RollCallEntry& entry) {
  EntryMessage message{entry.host, entry.process, {}};
  for (const Fact& fact : entry.facts) {
    message.texts.push_back(fact.what);
    message.texts.push_back(fact.value);
    message.texts.push_back(std::to_string(static_cast<int>(fact.rule)));
  }
  return to_wire(message);
}

RollCallEntry parse_roll_call_entry(std::string_view bytes) {
  const auto message = from_wire<EntryMessage>(bytes);
  RollCallEntry entry{message.host, message.process, {}};
  if (message.texts.size() % 3 != 0) throw run_error("an answer to the roll call is not a list of facts.");
  for (std::size_t i = 0; i < message.texts.size(); i += 3) {
    const std::string& rule = message.texts[i + 2];
    if (rule != "0" && rule != "1" && rule != "2") {
      throw run_error("an answer to the roll call has the rule {}, which there is not.", quoted(rule));
    }
    entry.facts.push_back({message.texts[i], message.texts[i + 1], static_cast<Fact::Rule>(rule[0] - '0')});
  }
  return entry;
}

std::string roll_call_digest(const RollCallEntry& entry) {
  RollCallEntry common{"", 0, {}};
  std::string of_host;
  for (const Fact& fact : entry.facts) {
    const bool shown = fact.rule == Fact::Rule::equal;
    common.facts.push_back({fact.what, shown ? fact.value : "", fact.rule});
    if (fact.rule == Fact::Rule::differs_on_host && !fact.value.empty())
      of_host += sha256_hex(entry.host + '\n' + fact.what + '\n' + fact.value);
  }
  return sha256_hex(roll_call_bytes(common)) + of_host;
}

std::optional<std::string> first_difference(const std::vector<RollCallEntry>& ranks) {
  for (std::size_t fact = 0; !ranks.empty() && fact < ranks[0].facts.size(); ++fact) {
    const Fact& first = ranks[0].facts[fact];
    for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
      auto sentence = difference_in(ranks, rank, first.what, &first, find(ranks[rank], first.what, fact));
      if (!sentence) sentence = clash(ranks, rank, fact);
      if (sentence) return sentence;
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
  const auto all_agree = [](const std::vector<std::string>& digests) {
    std::set<std::string_view> of_hosts;
    for (const std::string& digest : digests) {
      if (digest.compare(0, digest_size, digests.front(), 0, digest_size) != 0) return std::string();
      for (std::size_t at = digest_size; at < digest.size(); at += digest_size) {
        if (!of_hosts.insert(std::string_view(digest).substr(at, digest_size)).second) return std::string();
      }
    }
    return std::string("yes");
  };
  if (!group.consult(roll_call_digest(entry), all_agree).empty()) return;
  const std::string sentence =
      group.consult_texts(roll_call_bytes(entry), [](const std::vector<std::string>& texts) {
        std::vector<RollCallEntry> ranks;
        for (const std::string& text : texts) ranks.push_back(parse_roll_call_entry(text));
        return first_difference(ranks).value_or("");
      });
  if (!sentence.empty()) throw config_error("{}", sentence);
}

}  // namespace mulligan
