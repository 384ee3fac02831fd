#include "framework/ranks/launch_variables.h"

#include <algorithm>
#include <charconv>

#include "framework/core/error.h"
#include "framework/core/printable.h"

namespace mulligan {

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

std::string LaunchVariables::require_text(const std::string& name) const {
  if (auto value = text(name)) return *value;
  throw config_error(
      "the environment variable {} is missing, which a process started "
      "by {} has; choose another launcher with --launcher, or none.",
      name, launcher_);
}

std::optional<int> LaunchVariables::number(const std::string& name, int least, int most) const {
  const auto value = text(name);
  if (!value) return std::nullopt;
  int result = 0;
  const char* end = value->data() + value->size();
  const auto parsed = std::from_chars(value->data(), end, result);
  if (parsed.ec != std::errc{} || parsed.ptr != end || result < least || result > most) {
    throw config_error(
        "the environment variable {}='{}' is no whole number from "
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
