#include "framework/core/temporary_path.h"

#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <set>

#include "framework/core/error.h"

namespace mulligan {
namespace {

constexpr const char* kMark = ".tmp.";
constexpr auto kLongestSilence = std::chrono::hours(1);

// Of a name: letters, digits, '-' and '_' only, and not longer than a host's.
std::string as_name_part(std::string text) {
  text.resize(std::min<std::size_t>(text.size(), 64));
  for (char& letter : text) {
    if (!std::isalnum(static_cast<unsigned char>(letter)) && letter != '-') letter = '_';
  }
  return text;
}

std::string rank() {
  const char* value = std::getenv("RANK");
  return as_name_part(value && *value ? value : "0");
}

struct Writer {
  pid_t process = 0;
  std::string host;
};

// Of what follows the mark: PROCESS.NUMBER.RANK.HOST.
std::optional<Writer> parse_writer(std::string_view text) {
  Writer writer;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), writer.process);
  if (parsed.ec != std::errc() || writer.process <= 0) return {};
  text.remove_prefix(static_cast<std::size_t>(parsed.ptr - text.data()));
  if (!text.starts_with('.') || std::ranges::count(text, '.') != 3) return {};
  writer.host = text.substr(text.rfind('.') + 1);
  return writer;
}

}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  const bool known = ::gethostname(name.data(), name.size() - 1) == 0 && name[0] != 0;
  return known ? name.data() : "unknown";
}

std::filesystem::path temporary_name(const std::filesystem::path& path) {
  static std::atomic<unsigned> counter{0};
  return path.string() + fmt::format("{}{}.{}.{}.{}", kMark, ::getpid(), counter.fetch_add(1), rank(),
                                     as_name_part(host_name()));
}

std::string name_of_temporary(const std::string& file_name) {
  const std::size_t mark = file_name.find(kMark);
  if (mark == std::string::npos || !parse_writer(std::string_view(file_name).substr(mark + 5))) return "";
  return file_name.substr(0, mark);
}

bool is_left_behind(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  const std::size_t mark = name.find(kMark);
  if (mark == std::string::npos) return false;
  const std::optional<Writer> writer = parse_writer(std::string_view(name).substr(mark + 5));
  if (!writer) return false;
  if (writer->host != as_name_part(host_name())) {
    std::error_code failed;
    const auto written = std::filesystem::last_write_time(path, failed);
    return !failed && std::filesystem::file_time_type::clock::now() - written > kLongestSilence;
  }
  if (writer->process == ::getpid()) return true;  // this one has just begun
  return ::kill(writer->process, 0) != 0 && errno == ESRCH;
}

namespace {

// Never destroyed: the thread that waits for signals may need them while the process ends.
std::mutex& mutex() {
  static auto& one = *new std::mutex;
  return one;
}
std::multiset<std::filesystem::path>& paths() {
  static auto& all = *new std::multiset<std::filesystem::path>;
  return all;
}

}  // namespace

TemporaryPath::TemporaryPath(std::filesystem::path path) : path_(std::move(path)) {
  std::error_code failed;  // absolute: the process may change its folder before it ends
  std::filesystem::path absolute = std::filesystem::absolute(path_, failed);
  if (!failed) path_ = std::move(absolute);
  const std::lock_guard lock(mutex());
  paths().insert(path_);
}

TemporaryPath::~TemporaryPath() {
  const std::lock_guard lock(mutex());
  if (kept_) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  paths().erase(paths().find(path_));
}

void TemporaryPath::publish(const std::filesystem::path& target, const std::function<void()>& rename) {
  const std::lock_guard lock(mutex());
  std::error_code failed;
  rename ? rename() : std::filesystem::rename(path_, target, failed);
  if (failed)
    throw run_error("'{}' cannot be renamed into place: {}; choose another path.", target.string(),
                    failed.message());
  kept_ = true;
  // What has the name from now on is not this object's.
  paths().erase(paths().find(path_));
}

std::filesystem::path make_private_folder() {
  std::error_code failed;
  const std::filesystem::path place = std::filesystem::temp_directory_path(failed);
  std::string pattern = (place / "mulligan.XXXXXX").string();
  if (failed || ::mkdtemp(pattern.data()) == nullptr) {
    throw run_error(
        "cannot make a folder '{}': {}; set TMPDIR to a folder with free space that can be written to.",
        pattern, failed ? failed.message() : std::strerror(errno));
  }
  return pattern;
}

void remove_temporaries_for_good() {
  mutex().lock();
  std::error_code ignored;
  for (const std::filesystem::path& path : paths()) std::filesystem::remove_all(path, ignored);
}

std::filesystem::path cache_folder(const std::string& name) {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache)
    return std::filesystem::path(cache) / "mulligan" / name;
  if (const char* home = std::getenv("HOME"); home && *home)
    return std::filesystem::path(home) / ".cache" / "mulligan" / name;
  return {};
}

}  // namespace mulligan
