// The roll call: before any expensive work, ranks exchange facts about themselves, and refuse to go on if these differ.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "framework/ranks/host_group.h"

namespace mulligan {

// One thing that a rank states: "digest of the configuration", "version of gloo".
struct Fact {
  std::string what, value;
  auto fields() { return std::tie(what, value); }
};

// The facts of one rank, with its machine.
struct RollCallEntry {
  std::string host;
  std::uint32_t process = 0;
  std::vector<Fact> facts;
  auto fields() { return std::tie(host, process, facts); }
};

// Collective. A fact that a rank does not state counts as "(not set)". If facts differ, throws on every rank the same
// config_error: it names the first difference in the order of rank 0's facts, both ranks and both values. If all agree, only a
// digest is sent.
void call_roll(HostGroup& group, std::vector<Fact> facts);

// The sentence for the first difference, or nothing.
std::optional<std::string> first_difference(const std::vector<RollCallEntry>& ranks);

}  // namespace mulligan
