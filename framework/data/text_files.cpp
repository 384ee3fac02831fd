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
    data_error_if(
        !fs::is_directory(status) && !fs::is_regular_file(status),
        "the text input '{}' is neither a folder nor a file{}; give folders, text files or JSONL files",
        input.string(), error ? " (" + error.message() + ")" : "");
    const std::size_t before = found_.files.size();
    add(input, false);
    // Folders themselves come before the links to them, so that a link inside of the input is never the name by which
    // its own files are known.
    while (!links_.empty()) {
      std::vector<fs::path> links = std::exchange(links_, {});
      std::ranges::sort(links);
      for (const fs::path& link : links) add(link, true);
    }
    std::sort(found_.files.begin() + static_cast<std::ptrdiff_t>(before), found_.files.end());
  }

 private:
  // A file, or all below a folder, except what links lead to.
  void add(const fs::path& top, bool linked) {
    std::vector<fs::path> paths = {top};
    while (!paths.empty()) {
      const fs::path path = std::move(paths.back());
      paths.pop_back();
      std::error_code unknown;
      const fs::file_status status = fs::status(path, unknown);
      const auto inode = inode_of(path);
      const char* problem = nullptr;
      if (!inode) {
        problem = "the link leads nowhere";
      } else if (fs::is_directory(status)) {
        if (folders_.insert(*inode).second) {
          list(path, paths);
        } else {
          problem = "the folder was read before";
        }
      } else if (!fs::is_regular_file(status)) {
        problem = "it is neither a file nor a folder";
      } else if (files_.insert(*inode).second || !linked) {
        found_.files.push_back(path);
      } else {
        problem = "it links to a file that was read before";
      }
      if (problem) found_.left_out.emplace_back(path, problem);
      if (!problem && linked) ++found_.links;
      linked = false;
    }
  }

  void list(const fs::path& folder, std::vector<fs::path>& paths) {
    std::error_code failed, unknown;
    for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end;
         entry.increment(failed)) {
      const bool hidden = entry->path().filename().string().starts_with('.');
      (hidden ? found_.hidden : entry->is_symlink(unknown) ? links_ : paths).push_back(entry->path());
    }
    data_error_if(failed.value() != 0,
                  "cannot read the folder '{}': {}; check its permissions and those below it",
                  folder.string(), failed.message());
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
