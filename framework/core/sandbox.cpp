#include "framework/core/sandbox.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <exception>
#include <system_error>
#include <thread>

#include "framework/core/alternate_stack.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

// The kernel's interface, which older headers lack.
constexpr long create_ruleset = 444, add_rule = 445, restrict_self = 446;  // the same on every architecture
constexpr std::uint64_t may_execute = 1, may_write_file = 1 << 1, may_read_file = 1 << 2,
                        may_read_dir = 1 << 3;
constexpr std::uint64_t change_folder = 0x1FF0;  // remove and make, of every kind
constexpr std::uint64_t refer = 1 << 13, truncate = 1 << 14;

struct RulesetAttributes {
  std::uint64_t files = 0, net = 0, scoped = 0;
};
struct __attribute__((packed)) PathRule {
  std::uint64_t allowed = 0;
  std::int32_t parent = -1;
};

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

void allow(const Descriptor& rules, const fs::path& path, std::uint64_t rights) {
  const Descriptor opened(::open(path.c_str(), O_PATH | O_CLOEXEC));
  struct stat status {};
  if (opened.number() < 0 || ::fstat(opened.number(), &status) != 0) return;
  if (!S_ISDIR(status.st_mode)) rights &= may_execute | may_write_file | may_read_file | truncate;
  const PathRule rule{rights, opened.number()};
  ::syscall(add_rule, rules.number(), 1, &rule, 0);  // what cannot be allowed stays out of reach
}

}  // namespace

namespace {

// What lies below `root` but `hidden` and what leads there; links are reached where they lead. Real paths.
void add_siblings(const fs::path& root, const std::vector<fs::path>& hidden, std::vector<fs::path>& open) {
  std::error_code failed;
  std::vector<fs::path> look = {root};
  while (!look.empty()) {
    const fs::path folder = look.back();
    look.pop_back();
    for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end;
         entry.increment(failed)) {
      const fs::path path = entry->path();
      if (entry->is_symlink(failed)) continue;
      bool is_hidden = false, leads_there = false;
      for (const fs::path& one : hidden) {
        is_hidden = is_hidden || one == path;
        leads_there = leads_there || one.native().starts_with(path.native() + "/");
      }
      if (is_hidden) continue;
      (leads_there ? look : open).push_back(path);
    }
  }
}

std::vector<fs::path> real_paths(const std::vector<fs::path>& paths) {
  std::vector<fs::path> real;
  std::error_code failed;
  for (const fs::path& path : paths) real.push_back(fs::weakly_canonical(path, failed));
  return real;
}

}  // namespace

std::vector<fs::path> system_folders(const std::vector<fs::path>& hidden) {
  std::vector<fs::path> secret = real_paths(hidden), open;
  secret.emplace_back("/dev/shm");
  for (const fs::path& folder :
       real_paths({"/usr", "/lib", "/lib64", "/bin", "/sbin", "/opt", "/etc", "/proc", "/sys", "/dev"})) {
    const bool whole = std::ranges::none_of(secret, [&](const fs::path& one) {
      return one == folder || one.native().starts_with(folder.native() + "/") ||
             folder.native().starts_with(one.native() + "/");
    });
    if (whole) {
      open.push_back(folder);
    } else if (std::ranges::find(secret, folder) == secret.end()) {
      add_siblings(folder, secret, open);
    }
  }
  return open;
}

std::vector<fs::path> all_but(const std::vector<fs::path>& hidden) {
  std::vector<fs::path> open;
  add_siblings("/", real_paths(hidden), open);
  return open;
}

Confinement confine_files(const ReachableFiles& files) {
  Confinement done;
  const long version = ::syscall(create_ruleset, nullptr, 0, 1);
  if (version < 1) {
    done.missing = fmt::format("files (Landlock: {})", std::strerror(errno));
    return done;
  }
  const std::uint64_t reading = may_execute | may_read_file | may_read_dir;
  std::uint64_t writing = may_write_file | change_folder;
  if (version >= 2) writing |= refer;
  if (version >= 3) writing |= truncate;
  RulesetAttributes attributes;
  attributes.files = reading | writing;
  attributes.scoped = version >= 6 ? 1 : 0;  // abstract sockets of others
  const std::size_t size = version >= 6 ? 24 : version >= 4 ? 16 : 8;
  const Descriptor rules(static_cast<int>(::syscall(create_ruleset, &attributes, size, 0)));
  if (rules.number() < 0) {
    done.missing = fmt::format("files (Landlock: {})", std::strerror(errno));
    return done;
  }
  for (const fs::path& path : files.read) allow(rules, path, reading);
  for (const fs::path& path : files.change) allow(rules, path, reading | writing);
  for (const fs::path& path : files.write) allow(rules, path, writing | may_read_dir);
  for (const fs::path& path : files.look) {
    const Descriptor opened(::open(path.c_str(), O_PATH | O_CLOEXEC | O_DIRECTORY));
    const PathRule rule{may_read_dir, opened.number()};
    if (opened.number() >= 0) ::syscall(add_rule, rules.number(), 1, &rule, 0);
  }
  done.files =
      ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::syscall(restrict_self, rules.number(), 0) == 0;
  if (!done.files) done.missing = fmt::format("files (Landlock: {})", std::strerror(errno));
  return done;
}

Confinement both(const Confinement& files, const Confinement& calls) {
  std::string missing = files.missing;
  if (!calls.missing.empty()) missing += (missing.empty() ? "" : ", ") + calls.missing;
  return {files.files, calls.sockets, missing};
}

Confinement weaker(const Confinement& one, const Confinement& other) {
  std::string missing = one.missing;
  if (missing != other.missing && !other.missing.empty())
    missing += (missing.empty() ? "" : ", ") + other.missing;
  return {one.files && other.files, one.sockets && other.sockets, missing};
}

void run_in_thread(const std::function<void()>& work) {
  std::exception_ptr thrown;
  std::thread thread([&] {
    install_alternate_stack();
    try {
      work();
    } catch (...) {
      thrown = std::current_exception();
    }
  });
  thread.join();
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace mulligan
