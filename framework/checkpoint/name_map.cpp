#include "framework/checkpoint/name_map.h"

#include <fnmatch.h>

#include <algorithm>
#include <set>

#include "framework/config/schema.h"
#include "framework/config/toml_document.h"
#include "framework/core/error.h"

namespace mulligan {

void declare_keys(Schema<NamePair>& s) {
  s.key("theirs", &NamePair::theirs, "tensor of the other file; {i} stands for the repetition").required();
  s.key("ours", &NamePair::ours, "parameter here").required();
  s.key("slice", &NamePair::slice, "entry of the parameter's first dimension; -1: all of it").at_least(-1);
  s.key("repeat", &NamePair::repeat, "how many tensors the row stands for").range(1, 100000);
  s.key("transpose", &NamePair::transpose, "theirs is stored transposed");
  s.key("check_magnitude", &NamePair::check_magnitude, "apply the log2-magnitude test");
}

void declare_keys(Schema<NameMap>& s) {
  s.key("ignore", &NameMap::ignore, "globs over tensors of the other file that are left out");
}

namespace {

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
  NameMap map;
  map.source = path.string();
  read_keys(map, &tree, {}, map.source, elsewhere);
  const ConfigNode* rows = tree.find("tensor");
  if (!rows || rows->kind != ConfigNode::Kind::table_list) {
    throw config_error("the name map '{}' has no [[tensor]] rows; add one with theirs and ours.", map.source);
  }
  std::set<std::string> seen;
  for (const ConfigNode& node : rows->rows) {
    NamePair row;
    read_keys(row, &node, "tensor", node.origin.text());
    if (row.repeat > 1 && row.theirs.find("{i}") == std::string::npos) {
      throw config_error("{}: repeat = {} needs {{i}} in theirs = \"{}\".", node.origin.text(), row.repeat,
                         row.theirs);
    }
    for (std::int64_t i = 0; i < row.repeat; ++i) {
      NamePair& pair = map.pairs.emplace_back(row);
      pair.theirs = numbered(row.theirs, i);
      pair.ours = numbered(row.ours, i);
      if (row.slice >= 0) pair.slice += i;
      if (!seen.insert(pair.theirs).second) {
        throw config_error("{}: the tensor '{}' is mapped twice.", node.origin.text(), pair.theirs);
      }
    }
  }
  return map;
}

}  // namespace mulligan
