#include "lab/task_vectors/task_vectors_file.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "framework/core/error.h"
#include "framework/core/parse_json.h"
#include "lab/task_vectors/bit_packing.h"

namespace mulligan::task_vectors {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* header_key = "task_vectors";

std::string codes_name(const std::string& part, const std::string& parameter) {
  return "codes/" + part + "/" + parameter;
}
std::string grids_name(const std::string& part) {
  return "grids/" + part;
}

// The parts of a file by name: the mean, and each task.
template <typename Vectors, typename Visit>
void for_parts(Vectors& vectors, Visit&& visit) {
  if (vectors.base_bits > 0) visit("mean", vectors.mean, vectors.base_bits);
  for (std::size_t task = 0; task < vectors.tasks.size(); ++task)
    visit(std::to_string(task), vectors.tasks[task].tensors, vectors.bits);
}

// The base's place relative to the file's, so that both may move together.
std::string relative_base(const TaskVectors& vectors, const std::filesystem::path& file) {
  if (vectors.base_path.empty()) return {};
  const auto folder = std::filesystem::absolute(file).lexically_normal().parent_path();
  return std::filesystem::path(vectors.base_path).lexically_relative(folder).string();
}

std::string absolute_base(const std::string& relative, const std::filesystem::path& file) {
  if (relative.empty()) return {};
  return (std::filesystem::absolute(file).parent_path() / relative).lexically_normal().string();
}

Json header_of(const TaskVectors& vectors, const std::filesystem::path& file) {
  Json parameters = Json::array(), tasks = Json::array();
  for (const Parameter& parameter : vectors.parameters)
    parameters.push_back({{"name", parameter.name}, {"shape", parameter.shape}});
  for (const Task& task : vectors.tasks) {
    tasks.push_back({{"name", task.name},
                     {"tensors_sha256", task.sha256},
                     {"largest_error", task.largest_error},
                     {"metadata", task.metadata}});
  }
  return {{"bits", vectors.bits},
          {"base_bits", vectors.base_bits},
          {"base",
           {{"name", vectors.base_name},
            {"tensors_sha256", vectors.base_sha256},
            {"path", relative_base(vectors, file)}}},
          {"parameters", parameters},
          {"tasks", tasks}};
}

class Reader {
 public:
  explicit Reader(const std::filesystem::path& path) : file_(path) {}

  TaskVectors read() {
    const auto& metadata = file_.metadata();
    const auto format = metadata.find("format");
    require(format != metadata.end() && format->second == file_format, "it is of another format");
    const auto header = metadata.find(header_key), digest = metadata.find(tensors_sha256_key);
    require(header != metadata.end() && digest != metadata.end(), "its description is missing");
    require(digest->second == tensors_sha256(file_.tensors()), "its tensors are damaged");
    TaskVectors vectors = describe(header->second);
    std::size_t tensors = 0;
    for_parts(vectors, [&](const std::string& part, std::vector<Codes>& codes, int bits) {
      codes = read_part(part, vectors.parameters, bits);
      tensors += vectors.parameters.size() + 1;
    });
    require(file_.tensors().size() == tensors, "it holds tensors that its description does not name");
    return vectors;
  }

 private:
  void require(bool ok, const std::string& what) const {
    if (ok) return;
    throw data_error("'{}' is not a sound file of task vectors: {}; copy or pack it again.",
                     file_.path().string(), what);
  }

  TaskVectors describe(const std::string& text) const {
    const Json json = parse_json<Json>(text);
    require(json.is_object(), "its description is not a JSON object");
    TaskVectors vectors;
    try {
      vectors.bits = bits_of(json.at("bits"));
      vectors.base_bits = json.at("base_bits") == 0 ? 0 : bits_of(json.at("base_bits"));
      vectors.base_name = json.at("base").at("name").get<std::string>();
      vectors.base_sha256 = json.at("base").at("tensors_sha256").get<std::string>();
      vectors.base_path = absolute_base(json.at("base").at("path").get<std::string>(), file_.path());
      for (const Json& parameter : json.at("parameters")) {
        vectors.parameters.push_back(
            {parameter.at("name").get<std::string>(), shape_of(parameter.at("shape"))});
      }
      for (const Json& task : json.at("tasks")) {
        vectors.tasks.push_back({task.at("name").get<std::string>(),
                                 task.at("tensors_sha256").get<std::string>(),
                                 task.at("largest_error").get<double>(),
                                 task.at("metadata").get<std::map<std::string, std::string>>(),
                                 {}});
      }
    } catch (const nlohmann::json::exception& error) {
      require(false, fmt::format("its description is not as mulligan writes it ({})", error.what()));
    }
    check_names(vectors);
    return vectors;
  }

  int bits_of(const Json& value) const {
    const bool whole = value.is_number_integer();
    require(whole && value >= fewest_bits && value <= most_bits, "its codes have bits outside of 2 to 8");
    return value.get<int>();
  }

  // The number of elements must not overflow, because lengths of codes are compared with it.
  std::vector<std::int64_t> shape_of(const Json& value) const {
    std::vector<std::int64_t> shape;
    std::int64_t elements = 1;
    require(value.is_array(), "a shape is not a list");
    for (const Json& extent : value) {
      require(extent.is_number_unsigned() && extent <= std::uint64_t{INT64_MAX}, "a shape is not of sizes");
      shape.push_back(extent.get<std::int64_t>());
      require(!__builtin_mul_overflow(elements, shape.back(), &elements), "a shape is beyond 2^63 elements");
    }
    return shape;
  }

  void check_names(const TaskVectors& vectors) const {
    require(!vectors.parameters.empty() && !vectors.tasks.empty(), "it describes no parameters or no tasks");
    require(std::ranges::adjacent_find(vectors.parameters, std::greater_equal<>{}, &Parameter::name) ==
                vectors.parameters.end(),
            "its parameters are not sorted by name, each once");
    std::set<std::string> names;
    for (const Task& task : vectors.tasks) {
      require(!task.name.empty() && names.insert(task.name).second, "two tasks have one name");
      require(std::isfinite(task.largest_error) && task.largest_error >= 0, "an error is not a size");
    }
  }

  std::vector<Codes> read_part(const std::string& part, const std::vector<Parameter>& parameters,
                               int bits) const {
    const StoredTensor* grids = file_.find(grids_name(part));
    require(grids != nullptr && grids->type == StoredType::f64 &&
                grids->shape == std::vector<std::int64_t>{static_cast<std::int64_t>(parameters.size()), 2},
            fmt::format("'{}' is missing or of another kind", grids_name(part)));
    const std::vector<double> numbers = grids->copy<double>();
    std::vector<Codes> result;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const std::string name = codes_name(part, parameters[i].name);
      const StoredTensor* codes = file_.find(name);
      const std::size_t count = parameters[i].elements();
      require(codes != nullptr && codes->type == StoredType::u8 &&
                  codes->bytes.size() == packed_bytes(count, bits),
              fmt::format("'{}' is missing or of another length", name));
      require(clean_padding(codes->bytes, count, bits), fmt::format("'{}' does not end in zeros", name));
      const Grid grid{numbers[2 * i], numbers[2 * i + 1]};
      require(sound(grid), fmt::format("the grid of '{}' is not one of finite whole steps", name));
      result.push_back({grid, {codes->bytes.begin(), codes->bytes.end()}});
    }
    return result;
  }

  SafetensorsFile file_;
};

}  // namespace

bool is_task_vectors(const std::filesystem::path& path) {
  const SafetensorsFile file(path);
  const auto format = file.metadata().find("format");
  return format != file.metadata().end() && format->second == file_format;
}

TaskVectors read_task_vectors(const std::filesystem::path& path) {
  return Reader(path).read();
}

std::size_t write_task_vectors(const std::filesystem::path& path, const TaskVectors& vectors) {
  std::vector<StoredTensor> tensors;
  std::vector<std::vector<double>> grids(vectors.tasks.size() + 1);  // one per part, kept for the views
  std::size_t part_number = 0;
  for_parts(vectors, [&](const std::string& part, const std::vector<Codes>& codes, int) {
    std::vector<double>& numbers = grids[part_number++];
    for (std::size_t i = 0; i < codes.size(); ++i) {
      numbers.insert(numbers.end(), {codes[i].grid.step, codes[i].grid.zero});
      tensors.push_back({codes_name(part, vectors.parameters[i].name),
                         StoredType::u8,
                         {static_cast<std::int64_t>(codes[i].packed.size())},
                         codes[i].packed});
    }
    tensors.push_back({grids_name(part),
                       StoredType::f64,
                       {static_cast<std::int64_t>(codes.size()), 2},
                       std::as_bytes(std::span(numbers))});
  });
  write_safetensors(path, tensors,
                    {{"format", file_format},
                     {header_key, header_of(vectors, path).dump()},
                     {tensors_sha256_key, tensors_sha256(tensors)}});
  return std::filesystem::file_size(path);
}

}  // namespace mulligan::task_vectors
