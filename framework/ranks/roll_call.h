// The roll call: before any expensive work, ranks exchange facts about themselves, and refuse to go on if these differ.
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
    differs_on_host,  // different on each rank of a machine, if it is not empty
  };
  std::string what, value;
  Rule rule = Rule::equal;
  bool operator==(const Fact&) const = default;
};

// The facts of one rank, with its machine.
struct RollCallEntry {
  std::string host;
  std::uint32_t process = 0;
  std::vector<Fact> facts;
  bool operator==(const RollCallEntry&) const = default;
};

// Collective. A fact that a rank does not state counts as "(not set)". If facts differ, throws on every rank the same
// config_error: it names the first difference in the order of rank 0's facts, both ranks and both values. If all agree, only a
// digest is sent.
void call_roll(HostGroup& group, std::vector<Fact> facts);

// The parts of it. parse_roll_call_entry throws run_error if the bytes are not an entry. first_difference gives the sentence, or
// nothing. roll_call_digest is the same for ranks that agree, except for the facts that differ on a host, which follow it.
std::string roll_call_bytes(const RollCallEntry& entry);
RollCallEntry parse_roll_call_entry(std::string_view bytes);
std::string roll_call_digest(const RollCallEntry& entry);
std::optional<std::string> first_difference(const std::vector<RollCallEntry>& ranks);

}  // namespace mulligan
