#include "framework/checkpoint/name_map.h"

#include <fnmatch.h>

#include <algorithm>
#include <set>

#include "framework/config/schema.h"
#include "framework/config/toml_document.h"
#include "framework/core/error.h"

namespace mulligan {
namespace {

struct Row {
  std::string theirs, ours;
  std::int64_t slice = -1;
  std::int64_t repeat = 1;
  bool transpose = false;
  bool check_magnitude = true;
};

struct Top {
  std::vector<std::string> ignore;
};

void declare_keys(Schema<Row>& s) {
  s.key("theirs", &Row::theirs, "tensor of the other file; {i} stands for the repetition").required();
  s.key("ours", &Row::ours, "parameter here").required();
  s.key("slice", &Row::slice, "entry of the parameter's first dimension; -1: all of it").at_least(-1);
  s.key("repeat", &Row::repeat, "how many tensors the row stands for").range(1, 100000);
  s.key("transpose", &Row::transpose, "theirs is stored transposed");
  s.key("check_magnitude", &Row::check_magnitude, "apply the log2-magnitude test");
}

void declare_keys(Schema<Top>& s) {
  s.key("ignore", &Top::ignore, "globs over tensors of the other file that are left out");
}

std::string numbered(std::string name, std::int64_t number) {
  for (std::size_t at = name.find("{i}"); at != std::string::npos; at = name.find("{i}")) {
    name.replace(at, 3, std::to_string(number));
  }
  return name;
}

}  // namespace

bool NameMap::ignores(const std::string& theirs) const {
  return std::ranges::any_of(
      ignore, [&](const std::string& pattern) { return ::fnmatch(pattern.c_str(), theirs.c_str(), 0) == 0; });
}

NameMap read_name_map(const std::filesystem::path& path) {
  const ConfigNode tree = read_toml(path.string());
  static const std::vector<std::string> elsewhere = {"tensor"};
  Top top;
  read_keys(top, &tree, {}, path.string(), elsewhere);
  NameMap map;
  map.source = path.string();
  map.ignore = top.ignore;
  const ConfigNode* rows = tree.find("tensor");
  if (!rows || rows->kind != ConfigNode::Kind::table_list) {
    throw config_error("the name map '{}' has no [[tensor]] rows; add one with theirs and ours.", map.source);
  }
  std::set<std::string> seen;
  for (const ConfigNode& node : rows->rows) {
    Row row;
    read_keys(row, &node, "tensor", node.origin.text());
    if (row.repeat > 1 && row.theirs.find("{i}") == std::string::npos) {
      throw config_error("{}: repeat = {} needs {{i}} in theirs = \"{}\".", node.origin.text(), row.repeat,
                         row.theirs);
    }
    for (std::int64_t i = 0; i < row.repeat; ++i) {
      map.pairs.push_back({numbered(row.theirs, i), numbered(row.ours, i), row.slice < 0 ? -1 : row.slice + i,
                           row.transpose, row.check_magnitude});
      if (!seen.insert(map.pairs.back().theirs).second) {
        throw config_error("{}: the tensor '{}' is mapped twice.", node.origin.text(),
                           map.pairs.back().theirs);
      }
    }
  }
  return map;
}

}  // namespace mulligan
