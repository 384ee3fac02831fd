#include "framework/config/toml_document.h"

#include <toml++/toml.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <vector>

#include "framework/core/error.h"
#include "framework/core/file.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

// Turns toml++ nodes of one file into ConfigNodes.
class TreeBuilder {
 public:
  explicit TreeBuilder(const std::string& file) : file_(file) {}

  ConfigNode table(const toml::table& source) const {
    ConfigNode node = ConfigNode::make_table(origin(source));
    for (const auto& [key, child] : source) {
      if (key.str().find('.') != std::string_view::npos || key.str().empty()) {
        throw config_error(
            "{}: the quoted key \"{}\" is empty or contains a dot; write tables as [a.b] instead.",
            at(key.source()).text(), key.str());
      }
      ConfigNode built = any(child, key.str());
      if (built.is_leaf()) built.origin = at(key.source());
      node.put(key.str(), std::move(built));
    }
    return node;
  }

 private:
  Origin at(const toml::source_region& region) const {
    return {Origin::Kind::file, file_, static_cast<int>(region.begin.line)};
  }
  Origin origin(const toml::node& node) const { return at(node.source()); }

  ConfigNode leaf(const toml::node& source, ConfigValue value) const {
    return ConfigNode::make_leaf(std::move(value), origin(source));
  }

  ConfigNode any(const toml::node& source, std::string_view key) const {
    if (const auto* t = source.as_table()) return table(*t);
    if (const auto* a = source.as_array()) return array(*a, key);
    if (const auto* v = source.as_boolean()) return leaf(source, ConfigValue(v->get()));
    if (const auto* v = source.as_integer()) return leaf(source, ConfigValue(int64_t{v->get()}));
    if (const auto* v = source.as_floating_point()) return leaf(source, ConfigValue(v->get()));
    if (const auto* v = source.as_string()) return leaf(source, ConfigValue(v->get()));
    throw config_error("{}: '{}' is a date or time, which no key takes; write it as a string.",
                       origin(source).text(), key);
  }

  ConfigNode array(const toml::array& source, std::string_view key) const {
    const auto all = [&](auto test) { return std::ranges::all_of(source, test); };
    if (!source.empty() && all([](const toml::node& n) { return n.is_table(); })) {
      ConfigNode node = ConfigNode::make_rows(origin(source));
      for (const toml::node& row : source) node.rows.push_back(table(*row.as_table()));
      return node;
    }
    if (all([](const toml::node& n) {
          return n.is_string();
        })) {  // also the empty list: convert() fits it to its key
      ConfigValue::Strings list;
      for (const toml::node& item : source) list.push_back(item.as_string()->get());
      return leaf(source, ConfigValue(std::move(list)));
    }
    if (all([](const toml::node& n) { return n.is_number(); })) {
      ConfigValue::Reals list;
      for (const toml::node& item : source) list.push_back(*item.value<double>());
      return leaf(source, ConfigValue(std::move(list)));
    }
    throw config_error("{}: the list '{}' must hold only numbers, only strings, or only tables.",
                       origin(source).text(), key);
  }

  std::string file_;
};

ConfigNode parse_one(std::string_view text, const std::string& file) {
  try {
    return TreeBuilder(file).table(toml::parse(text, file));
  } catch (const toml::parse_error& error) {
    throw config_error("{}:{}: the file is not valid TOML: {}.", file,
                       static_cast<int>(error.source().begin.line), error.description());
  }
}

std::string read_config_file(const std::string& path, const Origin* extended_at) {
  const std::string who = extended_at == nullptr ? std::string() : extended_at->text() + ": ";
  if (!fs::is_regular_file(path)) {
    throw config_error("{}no configuration file '{}'; give the path of a TOML file.", who, path);
  }
  try {
    return read_file(path);
  } catch (const Error& error) {
    throw config_error("{}{}", who, error.what());
  }
}

// `chain` holds the files being read, outermost first, to find circles.
ConfigNode extend(ConfigNode tree, const std::string& file, std::vector<fs::path> chain) {
  const ConfigNode* extends = tree.find("extends");
  if (extends == nullptr) return tree;
  const Origin where = extends->origin;
  if (!extends->is_leaf() || extends->value.type() != ValueType::string) {
    throw config_error("{}: 'extends' must be the path of one TOML file, as a string.", where.text());
  }
  const fs::path base_path = (fs::path(file).parent_path() / extends->value.string()).lexically_normal();
  const fs::path identity = fs::weakly_canonical(base_path);
  if (std::ranges::find(chain, identity) != chain.end()) {
    throw config_error("{}: '{}' extends itself through a circle of 'extends'; remove one of them.",
                       where.text(), base_path.string());
  }
  chain.push_back(identity);
  const std::string base_name = base_path.string();
  ConfigNode base =
      extend(parse_one(read_config_file(base_name, &where), base_name), base_name, std::move(chain));
  tree.remove("extends");
  merge(base, std::move(tree));
  return base;
}

ConfigNode override_leaf(const std::string& text) {
  ConfigNode node = ConfigNode::make_leaf(ConfigValue(text), Origin::command_line(), text);
  try {
    const ConfigNode parsed = TreeBuilder("--set").table(toml::parse("value = " + text));
    const ConfigNode* value = parsed.find("value");
    if (parsed.members.size() == 1 && value->is_leaf()) node.value = value->value;
  } catch (const toml::parse_error&) {
    // Not TOML: a bare word, kept as the string it is.
  }
  return node;
}

}  // namespace

ConfigNode read_toml(const std::string& path) {
  return extend(parse_one(read_config_file(path, nullptr), path), path, {fs::weakly_canonical(path)});
}

ConfigNode parse_toml(std::string_view text, const std::string& name) {
  return extend(parse_one(text, name), name, {fs::weakly_canonical(name)});
}

ConfigNode parse_stored_toml(std::string_view text, const std::string& name) {
  ConfigNode tree = parse_one(text, name);
  if (tree.find("extends") != nullptr) {
    throw config_error("{}: a stored configuration may not extend another file.", name);
  }
  const std::function<void(const ConfigNode&)> refuse_paths = [&](const ConfigNode& node) {
    for (const ConfigMember& member : node.members) {
      if (member.name == "path") {
        throw config_error("{}: a stored configuration may not name a library, as its key 'path' does.",
                           member.node.origin.text());
      }
      refuse_paths(member.node);
    }
    for (const ConfigNode& row : node.rows) refuse_paths(row);
  };
  refuse_paths(tree);
  return tree;
}

void apply_overrides(ConfigNode& tree, std::span<const std::string> overrides) {
  ConfigNode all = ConfigNode::make_table(Origin::command_line());
  for (const std::string& text : overrides) {
    const size_t equals = text.find('=');
    const std::string key = text.substr(0, equals);
    const bool empty_part =
        key.empty() || key.front() == '.' || key.back() == '.' || key.find("..") != key.npos;
    if (equals == std::string::npos || empty_part) {
      throw config_error("--set {}: an override has the form section.key=value.", text);
    }
    ConfigNode* table = &all;
    size_t start = 0;
    for (size_t dot = key.find('.'); dot != std::string::npos; dot = key.find('.', start)) {
      const std::string name = key.substr(start, dot - start);
      ConfigNode* next = table->find(name);
      if (next == nullptr || !next->is_table()) {
        next = &table->put(name, ConfigNode::make_table(Origin::command_line()));
      }
      table = next;
      start = dot + 1;
    }
    table->put(key.substr(start), override_leaf(text.substr(equals + 1)));
  }
  merge(tree, std::move(all));
}

}  // namespace mulligan
