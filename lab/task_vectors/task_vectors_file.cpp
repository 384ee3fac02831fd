#include "lab/task_vectors/task_vectors_file.h"

#include "framework/core/error.h"
#include "framework/core/json_fields.h"
#include "framework/core/parse_json.h"
#include "lab/task_vectors/bit_packing.h"

namespace mulligan::task_vectors {

template <typename Fields>
void describe(Fields& f, Parameter& parameter) {
  f("name", parameter.name)("shape", parameter.shape);
}

template <typename Fields>
void describe(Fields& f, Task& task) {
  f("name", task.name)("tensors_sha256", task.sha256)("largest_error", task.largest_error);
  f("metadata", task.metadata);
}

// Without codes.
template <typename Fields>
void describe(Fields& f, TaskVectors& v) {
  f("bits", v.bits)("base_bits", v.base_bits);
  f.object("base", [&](auto& base) { base("name", v.base_name)("tensors_sha256", v.base_sha256); });
  f("parameters", v.parameters)("tasks", v.tasks);
}

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
    TaskVectors vectors = described(header->second);
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

  TaskVectors described(const std::string& text) const {
    const Json json = parse_json<Json>(text);
    require(json.is_object(), "its description is not a JSON object");
    TaskVectors vectors;
    try {
      vectors = fields_from_json<TaskVectors>(json);
    } catch (const std::invalid_argument& error) {
      require(false, fmt::format("its description is not as mulligan writes it ({})", error.what()));
    }
    const auto allowed = [](int bits) { return bits >= fewest_bits && bits <= most_bits; };
    require(allowed(vectors.bits) && (vectors.base_bits == 0 || allowed(vectors.base_bits)),
            "its codes have bits outside of 2 to 8");
    // The number of elements must not overflow, because lengths of codes are compared with it.
    for (const Parameter& parameter : vectors.parameters) {
      std::int64_t elements = 1;
      for (const std::int64_t extent : parameter.shape)
        require(!__builtin_mul_overflow(elements, extent, &elements), "a shape is beyond 2^63 elements");
    }
    return vectors;
  }

  std::vector<Codes> read_part(const std::string& part, const std::vector<Parameter>& parameters,
                               int bits) const {
    const StoredTensor* grids = file_.find(grids_name(part));
    require(grids != nullptr && grids->type == MLG_F64 &&
                grids->shape == std::vector<std::int64_t>{static_cast<std::int64_t>(parameters.size()), 2},
            fmt::format("'{}' is missing or of another kind", grids_name(part)));
    const std::vector<double> numbers = grids->copy<double>();
    std::vector<Codes> result;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const std::string name = codes_name(part, parameters[i].name);
      const StoredTensor* codes = file_.find(name);
      const std::size_t count = parameters[i].elements();
      require(codes != nullptr && codes->type == MLG_U8 && codes->bytes.size() == packed_bytes(count, bits),
              fmt::format("'{}' is missing or of another length", name));
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
                         MLG_U8,
                         {static_cast<std::int64_t>(codes[i].packed.size())},
                         codes[i].packed});
    }
    tensors.push_back({grids_name(part),
                       MLG_F64,
                       {static_cast<std::int64_t>(codes.size()), 2},
                       std::as_bytes(std::span(numbers))});
  });
  TaskVectors header{
      vectors.base_name, vectors.base_sha256, vectors.bits, vectors.base_bits, vectors.parameters, {}, {}};
  for (const Task& task : vectors.tasks)
    header.tasks.push_back({task.name, task.sha256, task.largest_error, task.metadata, {}});
  write_safetensors(path, tensors,
                    {{"format", file_format},
                     {header_key, fields_to_json(header).dump()},
                     {tensors_sha256_key, tensors_sha256(tensors)}});
  return std::filesystem::file_size(path);
}

}  // namespace mulligan::task_vectors
