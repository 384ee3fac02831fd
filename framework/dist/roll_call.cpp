#include "framework/dist/roll_call.h"

#include "framework/core/error.h"
#include "framework/core/printable.h"
#include "framework/dist/handshake.h"
#include "framework/dist/wire.h"

namespace mulligan {
namespace {

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

std::optional<std::string> difference(const std::vector<RollCallEntry>& ranks, std::size_t fact,
                                      std::size_t rank) {
  const Fact& own = ranks[rank].facts[fact];
  const Fact& first = ranks[0].facts[fact];
  if (own.rule == Fact::Rule::equal && own.value != first.value) {
    return fmt::format("{} and {} differ in {}: {} and {}; start all ranks with the same.", name(ranks, 0),
                       name(ranks, rank), printable(own.what), quoted(first.value), quoted(own.value));
  }
  if (own.rule != Fact::Rule::differs_on_host || own.value.empty()) return std::nullopt;
  for (std::size_t other = 0; other < rank; ++other) {
    if (ranks[other].host == ranks[rank].host && ranks[other].facts[fact].value == own.value) {
      return fmt::format("{} and {} have the same {}, {}; give each rank of a machine its own.",
                         name(ranks, other), name(ranks, rank), printable(own.what), quoted(own.value));
    }
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
  if (message.texts.size() % 3 != 0) throw run_error("an answer to the roll call is no list of facts.");
  for (std::size_t i = 0; i < message.texts.size(); i += 3) {
    const std::string& rule = message.texts[i + 2];
    if (rule != "0" && rule != "1" && rule != "2") {
      throw run_error("an answer to the roll call has the rule {}, which there is not.", quoted(rule));
    }
    entry.facts.push_back({message.texts[i], message.texts[i + 1], static_cast<Fact::Rule>(rule[0] - '0')});
  }
  return entry;
}

std::optional<std::string> first_difference(const std::vector<RollCallEntry>& ranks) {
  // Lists of two builds cannot be compared item by item.
  for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
    const auto& own = ranks[rank].facts;
    const auto& first = ranks[0].facts;
    const auto same = [](const Fact& a, const Fact& b) { return a.what == b.what && a.rule == b.rule; };
    if (!std::equal(own.begin(), own.end(), first.begin(), first.end(), same)) {
      return fmt::format(
          "{} and {} state different facts at the roll call; start all ranks with the same build of "
          "mulligan.",
          name(ranks, 0), name(ranks, rank));
    }
  }
  for (std::size_t fact = 0; !ranks.empty() && fact < ranks[0].facts.size(); ++fact) {
    for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
      if (auto sentence = difference(ranks, fact, rank)) return sentence;
    }
  }
  return std::nullopt;
}

std::vector<RollCallEntry> call_roll(HostGroup& group, std::vector<Fact> facts) {
  const RankName own = own_name(group.rank());
  std::vector<RollCallEntry> ranks;
  for (const std::string& bytes :
       group.all_gather(roll_call_bytes({own.host, own.process, std::move(facts)}))) {
    ranks.push_back(parse_roll_call_entry(bytes));
  }
  if (const auto sentence = first_difference(ranks)) throw config_error("{}", *sentence);
  return ranks;
}

}  // namespace mulligan
