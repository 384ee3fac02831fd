// The roll call: before anything expensive, ranks tell each other what they are, and refuse to go on together
// where they differ.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/ranks/host_group.h"

namespace mulligan {

// One thing that a rank states: "digest of the configuration", "device", "version of gloo".
struct Fact {
  enum class Rule : unsigned char {
    any,              // for the log
    equal,            // the same on all ranks
    differs_on_host,  // another on each rank of a machine, where it is not empty
  };
  std::string what, value;
  Rule rule = Rule::equal;
  bool operator==(const Fact&) const = default;
};

// What one rank states, with the machine that it is on.
struct RollCallEntry {
  std::string host;
  std::uint32_t process = 0;
  std::vector<Fact> facts;
  bool operator==(const RollCallEntry&) const = default;
};

// Collective. A fact that a rank does not state is "(not set)" there. Throws on every rank the same config_error,
// naming the first difference in the order of rank 0's facts, both ranks and both values. Only a digest travels
// where all agree.
void call_roll(HostGroup& group, std::vector<Fact> facts);

// The parts of it. parse_roll_call_entry throws run_error where the bytes are not an entry. first_difference: the
// sentence, or nothing. roll_call_digest: of ranks that agree, the same, but for what differs on a host, which
// follows it.
std::string roll_call_bytes(const RollCallEntry& entry);
RollCallEntry parse_roll_call_entry(std::string_view bytes);
std::string roll_call_digest(const RollCallEntry& entry);
std::optional<std::string> first_difference(const std::vector<RollCallEntry>& ranks);

}  // namespace mulligan
