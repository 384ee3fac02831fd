#include "framework/ranks/launch_variables.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "framework/core/error.h"
#include "framework/core/printable.h"

namespace mulligan {
namespace {

constexpr std::size_t most_nodes = 65536;

// Reads one list. Every refusal names the variable and its value.
class ListReader {
 public:
  ListReader(std::string_view list, std::string_view variable)
      : rest_(list), list_(list), variable_(variable) {}

  bool at_end() const { return rest_.empty(); }
  bool take(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!take(c)) refuse();
  }
  std::string_view take_until(std::string_view stops) {
    const std::string_view part = rest_.substr(0, rest_.find_first_of(stops));
    rest_.remove_prefix(part.size());
    return part;
  }
  std::string_view digits() {
    const std::string_view part = rest_.substr(0, rest_.find_first_not_of("0123456789"));
    if (part.empty() || part.size() > 9) refuse();
    rest_.remove_prefix(part.size());
    return part;
  }
  [[noreturn]] void refuse() const {
    throw config_error("{}='{}' is not a list as Slurm writes it; start the run with srun.", variable_,
                       printable(list_));
  }

 private:
  std::string_view rest_, list_, variable_;
};

int number(std::string_view digits) {
  int value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

// The first number in a pair of brackets; reads over the others.
std::string_view first_number(ListReader& reader) {
  std::string_view first;
  do {
    const std::string_view low = reader.digits();
    const std::string_view high = reader.take('-') ? reader.digits() : low;
    if (number(high) < number(low)) reader.refuse();
    if (first.empty()) first = low;
  } while (reader.take(','));
  reader.expect(']');
  return first;
}

}  // namespace

std::string first_node(std::string_view list, std::string_view variable) {
  ListReader reader(list, variable);
  std::string first;
  do {
    std::string name(reader.take_until("[],"));
    while (reader.take('[')) {
      name += first_number(reader);
      name += reader.take_until("[],");
    }
    if (name.empty()) reader.refuse();
    if (first.empty()) first = name;
  } while (reader.take(','));
  if (!reader.at_end()) reader.refuse();
  return first;
}

std::vector<int> expand_task_counts(std::string_view list, std::string_view variable) {
  ListReader reader(list, variable);
  std::vector<int> counts;
  do {
    const int tasks = number(reader.digits());
    int times = 1;
    if (reader.take('(')) {
      reader.expect('x');
      times = number(reader.digits());
      reader.expect(')');
    }
    if (tasks < 1 || times < 1 || counts.size() + static_cast<std::size_t>(times) > most_nodes)
      reader.refuse();
    counts.insert(counts.end(), static_cast<std::size_t>(times), tasks);
  } while (reader.take(','));
  if (!reader.at_end()) reader.refuse();
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
