#include "framework/ranks/launch_variables.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <optional>
#include <sstream>

#include "framework/core/error.h"
#include "framework/core/printable.h"

namespace mulligan {
namespace {

constexpr std::size_t most_nodes = 65536;

[[noreturn]] void refuse(std::string_view list, std::string_view variable) {
  throw config_error("{}='{}' is not a list as Slurm writes it; start the run with srun.", variable,
                     printable(list));
}

}  // namespace

std::string first_node(std::string_view list, std::string_view variable) {
  std::string name;
  for (std::size_t at = 0; at < list.size() && list[at] != ','; ++at) {
    if (list[at] != '[') {
      name += list[at];
      continue;
    }
    const std::size_t end = list.find(']', at);
    const std::string_view numbers = list.substr(at + 1, end - at - 1);
    const std::string_view first = numbers.substr(0, numbers.find_first_not_of("0123456789"));
    if (end == std::string_view::npos || first.empty() || first.size() > 9) refuse(list, variable);
    name += first;
    at = end;
  }
  if (name.empty()) refuse(list, variable);
  return name;
}

std::vector<int> expand_task_counts(std::string_view list, std::string_view variable) {
  if (list.empty() || list.back() == ',') refuse(list, variable);
  std::istringstream items{std::string(list)};
  std::vector<int> counts;
  for (std::string item; std::getline(items, item, ',');) {
    int tasks = 0, times = 1;
    int end = 0;  // of what was read
    std::sscanf(item.c_str(), "%9d%n(x%9d)%n", &tasks, &end, &times, &end);
    if (end != std::ssize(item) || tasks < 1 || times < 1 ||
        counts.size() + static_cast<std::size_t>(times) > most_nodes)
      refuse(list, variable);
    counts.insert(counts.end(), static_cast<std::size_t>(times), tasks);
  }
  return counts;
}

std::optional<std::string> LaunchVariables::text(const std::string& name) const {
  std::optional<std::string> value = lookup_(name);
  return value && !value->empty() ? value : std::nullopt;
}

std::optional<std::string> LaunchVariables::first_text(std::initializer_list<const char*> names) const {
  for (const char* name : names) {
    if (auto value = text(name)) return value;
  }
  return std::nullopt;
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += (i == 0 ? "" : i + 1 < names.size() ? ", " : " and ") + names[i];
  }
  return text;
}

std::string LaunchVariables::require_text(const std::string& name) const {
  require({name.c_str()});
  return *text(name);
}

void LaunchVariables::require(std::initializer_list<const char*> names) const {
  std::vector<std::string> missing;
  for (const char* name : names) {
    if (!has(name)) missing.emplace_back(name);
  }
  if (missing.empty()) return;
  throw config_error(
      "the environment variable{} {} {} missing, which a process started by {} has; choose another launcher "
      "with --launcher, or none.",
      missing.size() == 1 ? "" : "s", listed(missing), missing.size() == 1 ? "is" : "are", launcher_);
}

std::optional<int> LaunchVariables::number(const std::string& name, int least, int most) const {
  const auto value = text(name);
  if (!value) return std::nullopt;
  int result = 0;
  const char* end = value->data() + value->size();
  const auto parsed = std::from_chars(value->data(), end, result);
  if (parsed.ec != std::errc{} || parsed.ptr != end || result < least || result > most) {
    throw config_error(
        "the environment variable {}='{}' is not a whole number from "
        "{} to {}; start the run again with {}, or set it right.",
        name, printable(*value), least, most, launcher_);
  }
  return result;
}

int LaunchVariables::require_number(const std::string& name, int least, int most) const {
  require_text(name);
  return *number(name, least, most);
}

std::optional<HostAndPort> LaunchVariables::host_and_port(const std::string& name) const {
  const auto value = text(name);
  if (!value) return std::nullopt;
  std::string host = *value, port;
  if (host.front() == '[') {
    const std::size_t end = host.find(']');
    if (end != std::string::npos && end + 1 < host.size() && host[end + 1] == ':')
      port = host.substr(end + 2);
    host = end == std::string::npos ? "" : host.substr(1, end - 1);
  } else if (std::ranges::count(host, ':') == 1) {
    port = host.substr(host.find(':') + 1);
    host.resize(host.find(':'));
  }
  const auto odd = [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == 127; };
  if (host.empty() || host.size() > 255 || std::ranges::any_of(host, odd)) {
    throw config_error(
        "the environment variable {}='{}' is no HOST or HOST:PORT; name rank 0's machine there.", name,
        printable(*value));
  }
  if (port.empty()) return HostAndPort{host, std::nullopt};
  const EnvironmentLookup of_port = [&](const std::string&) { return port; };
  const auto number = LaunchVariables(of_port, launcher_).number("the port of " + name, 1, 65535);
  return HostAndPort{host, static_cast<std::uint16_t>(*number)};
}

}  // namespace mulligan
