// Environment variables as numbers and addresses, with sentences for missing or invalid ones.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "framework/ranks/launch_environment.h"

namespace mulligan {

// The compressed lists of Slurm: names of nodes and tasks per node.

// "n[01-03,7],m5" -> n01. Throws config_error that names `variable` if the list is malformed.
std::string first_node(std::string_view list, std::string_view variable);

// "2(x3),1" -> 2 2 2 1, at most 65,536 of them. Throws as above.
std::vector<int> expand_task_counts(std::string_view list, std::string_view variable);

struct HostAndPort {
  std::string host;
  std::optional<std::uint16_t> port;
};

// "A", "A and B", "A, B and C".
std::string listed(const std::vector<std::string>& names);

class LaunchVariables {
 public:
  LaunchVariables(const EnvironmentLookup& lookup, std::string launcher)
      : lookup_(lookup), launcher_(std::move(launcher)) {}

  // Nothing if the variable is not set or empty.
  std::optional<std::string> text(const std::string& name) const;
  // The first of the names that is set.
  std::optional<std::string> first_text(std::initializer_list<const char*> names) const;
  bool has(const std::string& name) const { return text(name).has_value(); }
  std::string require_text(const std::string& name) const;
  // Throws config_error that names each of the names that are not set.
  void require(std::initializer_list<const char*> names) const;

  // Whole numbers from `least` to `most`. Throw config_error that names the variable and its value.
  std::optional<int> number(const std::string& name, int least, int most) const;
  int require_number(const std::string& name, int least, int most) const;

  // HOST, HOST:PORT, [ADDRESS]:PORT or an IPv6 address.
  std::optional<HostAndPort> host_and_port(const std::string& name) const;

 private:
  const EnvironmentLookup& lookup_;
  std::string launcher_;
};

}  // namespace mulligan
