#include "framework/checkpoint/weight_exchange.h"

#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <mulligan/half.hpp>
#include <set>

#include "framework/checkpoint/compare.h"
#include "framework/checkpoint/float_formats.h"
#include "framework/config/schema.h"
#include "framework/config/toml_document.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/parse_json.h"

namespace mulligan {

namespace fs = std::filesystem;

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

namespace {

using Shape = std::vector<std::int64_t>;

std::size_t elements_of(const Shape& shape) {
  std::size_t count = 1;
  for (const std::int64_t extent : shape) count *= static_cast<std::size_t>(extent);
  return count;
}

// Where the elements of one mapped tensor lie within the whole parameter.
struct Place {
  std::size_t begin = 0;  // first element
  Shape shape;            // of the part, as ours
};

Place place_of(const NamePair& pair, const Shape& whole, const std::string& map) {
  if (pair.slice < 0) return {0, whole};
  if (whole.size() < 2 || pair.slice >= whole.front()) {
    throw data_error("the name map '{}' puts '{}' into entry {} of '{}', which has the shape [{}].", map,
                     pair.theirs, pair.slice, pair.ours, fmt::join(whole, ", "));
  }
  Shape part(whole.begin() + 1, whole.end());
  const std::size_t size = elements_of(part);
  return {static_cast<std::size_t>(pair.slice) * size, std::move(part)};
}

Shape their_shape(const NamePair& pair, const Shape& ours, const std::string& map) {
  if (!pair.transpose) return ours;
  if (ours.size() != 2) {
    throw data_error(
        "the name map '{}' transposes '{}', but its place in '{}' has the shape [{}], not two dimensions.",
        map, pair.theirs, pair.ours, fmt::join(ours, ", "));
  }
  return {ours[1], ours[0]};
}

// Index in a row-major [rows, columns] matrix's transpose, or the index itself.
std::size_t source_index(std::size_t index, const Shape& target, bool transpose) {
  if (!transpose) return index;
  const auto columns = static_cast<std::size_t>(target[1]), rows = static_cast<std::size_t>(target[0]);
  return (index % columns) * rows + index / columns;
}

// A tensor to be written, and the source elements that fill it.
struct Part {
  const StoredTensor* source = nullptr;
  std::size_t source_begin = 0;
  std::size_t target_begin = 0;
  Shape shape;  // of the part in the target
  bool transpose = false;
};
struct Target {
  std::string name;
  DType type = MLG_F32;
  Shape shape;
  std::vector<Part> parts;
};

std::vector<float> decode_part(const Part& part) {
  const std::size_t size = sdk::dtype_bytes(part.source->type), count = elements_of(part.shape);
  return decode_weights(part.source->bytes.subspan(part.source_begin * size, count * size),
                        part.source->type);
}

std::vector<std::byte> fill(const Target& target) {
  std::vector<float> values(elements_of(target.shape));
  for (const Part& part : target.parts) {
    const std::vector<float> source = decode_part(part);
    for (std::size_t i = 0; i < source.size(); ++i) {
      const float value = source[source_index(i, part.shape, part.transpose)];
      if (target.type == MLG_F16 && std::isfinite(value) &&
          !std::isfinite(sdk::half_value(sdk::half_bits(value)))) {
        throw data_error("'{}' holds the value {}, which F16 cannot; choose bf16 or f32.", part.source->name,
                         value);
      }
      values[part.target_begin + i] = value;
    }
  }
  return encode_weights(values, target.type);
}

// Returns their number.
std::size_t write_targets(const std::vector<Target>& targets, const fs::path& output,
                          std::map<std::string, std::string> metadata) {
  std::vector<std::vector<std::byte>> contents;
  std::vector<StoredTensor> tensors;
  for (const Target& target : targets) {
    contents.push_back(fill(target));
    tensors.push_back({target.name, target.type, target.shape, contents.back()});
  }
  metadata[tensors_sha256_key] = tensors_sha256(tensors);
  write_safetensors(output, tensors, metadata);
  return targets.size();
}

void require_magnitudes(const Part& part, const NamePair& pair) {
  const MagnitudeReport magnitudes = test_magnitudes(decode_part(part));
  if (magnitudes.verdict == MagnitudeVerdict::plausible || magnitudes.verdict == MagnitudeVerdict::suspicious)
    return;
  throw data_error(
      "'{}', stored as {}: {}; convert the file again from its source, or set check_magnitude = false "
      "for this tensor.",
      pair.theirs, stored_name(part.source->type), describe(magnitudes));
}

void require_all_used(const std::vector<std::string>& left, const char* what, const std::string& map) {
  if (left.empty()) return;
  const std::size_t shown = std::min<std::size_t>(left.size(), 3);
  throw data_error("{} {} the name map '{}' does not mention, for example {}; add them{}.", left.size(), what,
                   map, fmt::join(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                   std::string_view(what).starts_with("tensors") ? ", or name them in ignore" : "");
}

}  // namespace

std::vector<SafetensorsFile> open_indexed(const fs::path& index) {
  const auto wrong = [&](const std::string& what) {
    return data_error("'{}' {}; save the weights again, or copy all of their files.", index.string(), what);
  };
  const auto json = parse_json(read_file(index, kLargestDescription));
  if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object() ||
      json["weight_map"].empty())
    throw wrong("has no weight_map");
  std::set<fs::path> listed;
  for (const auto& [tensor, file] : json["weight_map"].items()) {
    const fs::path name = file.is_string() ? file.get<std::string>() : "";
    if (name.empty() || name != name.filename())
      throw wrong(fmt::format("puts '{}' into no file of the folder", tensor));
    listed.insert(name);
  }
  std::vector<SafetensorsFile> files;
  for (const fs::path& name : listed) files.emplace_back(index.parent_path() / name);
  return files;
}

std::size_t import_weights(const std::vector<SafetensorsFile>& files, const NameMap& map,
                           const std::vector<WeightSpec>& model, DType dtype, const fs::path& output,
                           const std::map<std::string, std::string>& metadata) {
  const std::string source = files.front().path().string();
  const auto tensor_of = [&](const std::string& name) -> const StoredTensor& {
    const auto found = std::ranges::find_if(files, [&](const SafetensorsFile& f) { return f.find(name); });
    return (found == files.end() ? files.front() : *found).at(name);
  };
  std::vector<Target> targets;
  std::vector<std::vector<bool>> filled;
  std::vector<std::string> left;
  for (const WeightSpec& spec : model) {
    targets.push_back({spec.name, dtype, spec.shape, {}});
    filled.emplace_back(spec.shape.empty() ? 1 : static_cast<std::size_t>(spec.shape.front()), false);
  }
  std::set<std::string> used;
  for (const NamePair& pair : map.pairs) {
    const auto spec = std::ranges::find(model, pair.ours, &WeightSpec::name);
    if (spec == model.end()) {
      throw data_error("the name map '{}' fills '{}', which the configured model does not have.", map.source,
                       pair.ours);
    }
    const auto number = static_cast<std::size_t>(spec - model.begin());
    const Place place = place_of(pair, spec->shape, map.source);
    const StoredTensor& tensor = tensor_of(pair.theirs);
    require_weight_format(source, tensor);
    used.insert(pair.theirs);
    const Shape expected = their_shape(pair, place.shape, map.source);
    if (tensor.shape != expected) {
      throw data_error(
          "'{}' holds '{}' with the shape [{}], but '{}' needs [{}]{}.", source, pair.theirs,
          fmt::join(tensor.shape, ", "), pair.ours, fmt::join(expected, ", "),
          tensor.shape == Shape(expected.rbegin(), expected.rend()) ? "; it may have to be transposed" : "");
    }
    for (std::size_t entry = 0; entry < filled[number].size(); ++entry) {
      if (pair.slice >= 0 && entry != static_cast<std::size_t>(pair.slice)) continue;
      if (filled[number][entry]) {
        throw data_error("the name map '{}' fills entry {} of '{}' twice, the second time with '{}'.",
                         map.source, entry, pair.ours, pair.theirs);
      }
      filled[number][entry] = true;
    }
    targets[number].parts.push_back({&tensor, 0, place.begin, place.shape, pair.transpose});
    if (spec->matrix && pair.check_magnitude) require_magnitudes(targets[number].parts.back(), pair);
  }
  std::set<std::string> held;
  for (const SafetensorsFile& file : files)
    for (const StoredTensor& tensor : file.tensors()) {
      if (!held.insert(tensor.name).second)
        throw data_error("'{}' lies in two files next to '{}'; copy all files of one save.", tensor.name,
                         source);
      if (!used.contains(tensor.name) && !map.ignores(tensor.name)) left.push_back(tensor.name);
    }
  require_all_used(left, "tensors of the file", map.source);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const auto missing = std::ranges::find(filled[i], false);
    if (missing != filled[i].end()) {
      left.push_back(fmt::format("{} (entry {})", targets[i].name, missing - filled[i].begin()));
    }
  }
  require_all_used(left, "parameters of the model", map.source);
  return write_targets(targets, output, metadata);
}

std::size_t export_weights(const std::vector<StoredTensor>& weights, const NameMap* map,
                           std::optional<DType> dtype, const fs::path& output,
                           const std::map<std::string, std::string>& metadata) {
  std::vector<Target> targets;
  std::vector<std::string> left;
  for (const StoredTensor& weight : weights) {
    require_weight_format(output, weight);
    const DType type = dtype.value_or(weight.type);
    if (!map) {
      targets.push_back({weight.name, type, weight.shape, {{&weight, 0, 0, weight.shape, false}}});
      continue;
    }
    bool mapped = false;
    for (const NamePair& pair : map->pairs) {
      if (pair.ours != weight.name) continue;
      mapped = true;
      const Place place = place_of(pair, weight.shape, map->source);
      const Shape shape = their_shape(pair, place.shape, map->source);
      targets.push_back({pair.theirs, type, shape, {{&weight, place.begin, 0, shape, pair.transpose}}});
    }
    if (!mapped) left.push_back(weight.name);
  }
  if (map) require_all_used(left, "parameters of the model", map->source);
  return write_targets(targets, output, metadata);
}

}  // namespace mulligan
