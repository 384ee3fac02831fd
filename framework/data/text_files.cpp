#include "framework/data/text_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <set>

#include "framework/core/error.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

// What tells a file or folder from all others.
using Inode = std::pair<dev_t, ino_t>;

std::optional<Inode> inode_of(const fs::path& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return std::nullopt;
  return Inode(found.st_dev, found.st_ino);
}

class FileSearch {
 public:
  explicit FileSearch(TextFiles& found) : found_(found) {}

  void add_input(const fs::path& input) {
    std::error_code error;
    const fs::file_status status = fs::status(input, error);
    if (fs::is_regular_file(status)) {
      add_file(input);
      return;
    }
    if (!fs::is_directory(status)) {
      throw data_error(
          "the text input '{}' is neither a folder nor a file{}; give folders, text files or JSONL files",
          input.string(), error ? " (" + error.message() + ")" : "");
    }
    const std::size_t before = found_.files.size();
    add_folder(input, "the folder was read before");
    // Folders themselves come before the links to them, so that a link inside of the input is never the name by which
    // its own files are known.
    while (!links_.empty()) {
      std::vector<fs::path> links = std::exchange(links_, {});
      std::ranges::sort(links);
      for (const fs::path& link : links) follow(link);
    }
    std::sort(found_.files.begin() + static_cast<std::ptrdiff_t>(before), found_.files.end());
  }

 private:
  void leave_out(const fs::path& path, std::string reason) {
    found_.left_out.emplace_back(path, std::move(reason));
  }

  void add_file(const fs::path& file) {
    if (const auto inode = inode_of(file)) files_.insert(*inode);
    found_.files.push_back(file);
  }

  // All below, except what links lead to.
  void add_folder(const fs::path& top, const char* repeated) {
    std::vector<fs::path> folders = {top};
    while (!folders.empty()) {
      const fs::path folder = std::move(folders.back());
      folders.pop_back();
      const auto inode = inode_of(folder);
      if (inode && !folders_.insert(*inode).second) {
        leave_out(folder, repeated);
        continue;
      }
      std::error_code failed;
      for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end;
           entry.increment(failed))
        sort_in(*entry, folders);
      if (failed) {
        throw data_error("cannot read the folder '{}': {}; check its permissions and those below it",
                         folder.string(), failed.message());
      }
    }
  }

  void sort_in(const fs::directory_entry& entry, std::vector<fs::path>& folders) {
    std::error_code unknown;
    const fs::file_status status = entry.symlink_status(unknown);
    if (entry.path().filename().string().starts_with('.')) {
      found_.hidden.push_back(entry.path());
    } else if (fs::is_symlink(status)) {
      links_.push_back(entry.path());
    } else if (fs::is_directory(status)) {
      folders.push_back(entry.path());
    } else if (fs::is_regular_file(status)) {
      add_file(entry.path());
    } else {
      leave_out(entry.path(), "it is neither a file nor a folder");
    }
  }

  void follow(const fs::path& link) {
    std::error_code failed;
    const fs::file_status status = fs::status(link, failed);
    const auto inode = inode_of(link);
    if (!inode) {
      leave_out(link, "the link leads nowhere");
    } else if (fs::is_directory(status)) {
      if (folders_.contains(*inode)) return leave_out(link, "it links to a folder that was read before");
      ++found_.links;
      add_folder(link, "the folder was read before");
    } else if (fs::is_regular_file(status)) {
      if (files_.contains(*inode)) return leave_out(link, "it links to a file that was read before");
      ++found_.links;
      add_file(link);
    } else {
      leave_out(link, "it links to neither a file nor a folder");
    }
  }

  TextFiles& found_;
  std::set<Inode> folders_, files_;
  std::vector<fs::path> links_;  // of the present input, not yet followed
};

}  // namespace

TextFiles find_text_files(const std::vector<fs::path>& inputs) {
  TextFiles found;
  FileSearch search(found);
  for (const fs::path& input : inputs) search.add_input(input);
  std::ranges::sort(found.hidden);
  std::ranges::sort(found.left_out);
  return found;
}

}  // namespace mulligan
