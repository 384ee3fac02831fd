#include "framework/config/config_tree.h"

#include <algorithm>

#include "framework/core/error.h"
#include "framework/core/parse_number.h"

namespace mulligan {
namespace {

std::string leaf_text(const ConfigNode& table, std::string_view name) {
  const ConfigNode* leaf = table.find(name);
  if (leaf == nullptr || !leaf->is_leaf() || leaf->value.type() != ValueType::string) return {};
  return leaf->value.string();
}

bool names_another_plugin(const ConfigNode& base, const ConfigNode& over) {
  if (over.find("plugin") == nullptr && over.find("path") == nullptr) return false;
  // The user says where the library of a stored table lies: the same plugin, unless its name is another.
  const ConfigNode* path = base.find("path");
  if (path != nullptr && path->origin.kind == Origin::Kind::stored) {
    const std::string base_name = leaf_text(base, "plugin"), name = leaf_text(over, "plugin");
    return !base_name.empty() && !name.empty() && base_name != name;
  }
  return leaf_text(base, "plugin") != leaf_text(over, "plugin") ||
         leaf_text(base, "path") != leaf_text(over, "path");
}

void merge_rows(ConfigNode& base, ConfigNode over, const std::string& path) {
  for (ConfigMember& member : over.members) {
    const auto index = parse_number<std::size_t>(member.name);
    if (!index || *index >= base.rows.size()) {
      throw config_error("{}: '{}' has no row '{}'; its rows are 0 to {}.", member.node.origin.text(), path,
                         member.name, base.rows.size() - 1);
    }
    merge(base.rows[*index], std::move(member.node), path + "." + member.name);
  }
}

}  // namespace

ConfigNode ConfigNode::make_leaf(ConfigValue value, Origin origin, std::string raw) {
  ConfigNode node;
  node.kind = Kind::leaf;
  node.value = std::move(value);
  node.origin = std::move(origin);
  node.raw = std::move(raw);
  return node;
}

ConfigNode ConfigNode::make_table(Origin origin) {
  ConfigNode node;
  node.origin = std::move(origin);
  return node;
}

const ConfigNode* ConfigNode::find(std::string_view name) const {
  const auto it = std::ranges::find(members, name, &ConfigMember::name);
  return it == members.end() ? nullptr : &it->node;
}

ConfigNode* ConfigNode::find(std::string_view name) {
  return const_cast<ConfigNode*>(static_cast<const ConfigNode*>(this)->find(name));
}

const ConfigNode* ConfigNode::find_path(std::string_view path) const {
  const ConfigNode* node = this;
  while (node != nullptr && !path.empty()) {
    const size_t dot = path.find('.');
    node = node->find(path.substr(0, dot));
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
  return node;
}

ConfigNode* ConfigNode::find_path(std::string_view path) {
  return const_cast<ConfigNode*>(static_cast<const ConfigNode*>(this)->find_path(path));
}

ConfigNode& ConfigNode::put(std::string_view name, ConfigNode node) {
  if (ConfigNode* old = find(name)) return *old = std::move(node);
  return members.emplace_back(ConfigMember{std::string(name), std::move(node)}).node;
}

void ConfigNode::remove(std::string_view name) {
  std::erase_if(members, [&](const ConfigMember& member) { return member.name == name; });
}

const ConfigNode* find_rows(const ConfigNode& tree, const std::string& path) {
  const ConfigNode* list = tree.find_path(path);
  if (list != nullptr && (list->kind != ConfigNode::Kind::table_list || list->rows.empty()))
    throw config_error("{}: '{}' must be written as rows [[{}]].", list->origin.text(), path, path);
  return list;
}

void merge(ConfigNode& base, ConfigNode over, const std::string& path) {
  if (base.kind == ConfigNode::Kind::table_list && over.is_table()) {
    merge_rows(base, std::move(over), path);
  } else if (!base.is_table() || !over.is_table()) {
    base = std::move(over);
  } else {
    if (names_another_plugin(base, over)) {
      std::erase_if(base.members, [](const ConfigMember& member) {
        return member.node.kind != ConfigNode::Kind::table_list;
      });
    }
    for (ConfigMember& member : over.members) {
      ConfigNode* old = base.find(member.name);
      if (old == nullptr) {
        base.put(member.name, std::move(member.node));
      } else {
        merge(*old, std::move(member.node), path.empty() ? member.name : path + "." + member.name);
      }
    }
    base.origin = over.origin;
  }
}

}  // namespace mulligan
