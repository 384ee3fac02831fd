#include "plugins/backends/cuda/triton/description.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace mulligan::cuda::triton {
namespace {

using Json = nlohmann::json;

class Reader {
 public:
  explicit Reader(std::string file) : file_(std::move(file)) {}

  std::runtime_error error(const std::string& what) const { return std::runtime_error(file_ + ": " + what); }

  Json parse() const {
    std::ifstream stream(file_);
    if (!stream) {
      throw error(std::string("the description of a compiled kernel cannot be read (") +
                  std::strerror(errno) + "); it lies next to the .ptx and has its name");
    }
    try {
      return Json::parse(stream);
    } catch (const Json::parse_error& damage) {
      throw error("this is not JSON, from byte " + std::to_string(damage.byte) +
                  " on; compile the kernel again");
    }
  }

  const Json& member(const Json& object, const char* name) const {
    const auto found = object.is_object() ? object.find(name) : object.end();
    if (!object.is_object() || found == object.end()) {
      throw error(std::string("the member '") + name + "' is missing; compile the kernel with " +
                  "compile_kernels.py, or add it as docs/triton.md says");
    }
    return *found;
  }

  std::string text(const Json& object, const char* name) const {
    const Json& value = member(object, name);
    if (!value.is_string()) throw wrong(name, "a string", value);
    return value;
  }
  std::int64_t number(const Json& object, const char* name, std::int64_t lowest, std::int64_t highest) const {
    const Json& value = member(object, name);
    const std::string range =
        "a whole number from " + std::to_string(lowest) + " to " + std::to_string(highest);
    if (!value.is_number_integer()) throw wrong(name, range, value);
    const auto result = value.get<std::int64_t>();
    if (result < lowest || result > highest) throw wrong(name, range, value);
    return result;
  }
  const Json& list(const Json& object, const char* name) const {
    const Json& value = member(object, name);
    if (!value.is_array()) throw wrong(name, "a list", value);
    return value;
  }
  std::runtime_error wrong(const char* name, const std::string& expected, const Json& found) const {
    return error(std::string("the member '") + name + "' must be " + expected + ", but it is " +
                 (found.is_structured() ? std::string("an ") + found.type_name() : found.dump()));
  }

 private:
  std::string file_;
};

// Kernels that need more than a plain launch.
void refuse_special_launches(const Reader& reader, const Json& json) {
  const auto refuse = [&](bool asked, const char* what) {
    if (asked)
      throw reader.error(std::string("the kernel asks for ") + what +
                         ", which the cuda backend does not launch; compile it without");
  };
  const auto set = [&](const char* name) {
    const auto found = json.find(name);
    if (found == json.end() || found->is_null()) return false;
    return found->is_boolean() ? found->get<bool>() : !found->empty() && *found != 0;
  };
  refuse(set("num_ctas") && json["num_ctas"] != 1, "clusters of blocks (num_ctas > 1)");
  refuse(set("launch_cooperative_grid"), "a cooperative grid");
  refuse(set("launch_pdl"), "programmatic dependent launch");
  refuse(set("tensordesc_meta"), "tensor descriptors as parameters");
  refuse(set("tmem_size"), "tensor memory");
}

// Older Tritons have no profile scratch, still older ones none at all: a parameter exists when its
// size is given.
void read_scratch(const Reader& reader, const Json& json, Description& out) {
  constexpr std::int64_t kMost = std::int64_t{1} << 32;
  for (const char* name : {"global_scratch", "profile_scratch"}) {
    const std::string size = std::string(name) + "_size", alignment = std::string(name) + "_align";
    if (!json.contains(size)) continue;
    // Workspace is aligned to 256 bytes.
    reader.number(json, alignment.c_str(), 1, 256);
    out.scratch.push_back({name, static_cast<std::size_t>(reader.number(json, size.c_str(), 0, kMost))});
  }
}

void read_launch(const Reader& reader, const Json& json, Description& out) {
  const Json& launch = reader.member(json, "mulligan");
  out.kernel = reader.text(launch, "kernel");
  for (const Json& item : reader.list(launch, "parameters")) {
    DescribedParameter& parameter = out.parameters.emplace_back();
    parameter.name = reader.text(item, "name");
    parameter.type = reader.text(item, "type");
    if (item.contains("extent")) parameter.extent = reader.text(item, "extent");
    if (item.contains("divisible_by"))
      parameter.divisible_by = reader.number(item, "divisible_by", 1, 1 << 20);
  }
  if (launch.contains("when")) {
    const Json& when = launch["when"];
    if (!when.is_object()) throw reader.wrong("when", "a table of numbers", when);
    for (const auto& [name, value] : when.items()) {
      if (!value.is_number()) throw reader.wrong("when", "a table of numbers", when);
      out.when.emplace_back(name, value.get<double>());
    }
  }
  const Json& grid = reader.list(launch, "grid");
  if (grid.empty() || grid.size() > 3) throw reader.wrong("grid", "a list of one to three extents", grid);
  for (const Json& axis : grid) {
    if (!axis.is_string() && !(axis.is_number_unsigned() && axis <= 0x7FFFFFFF)) {
      throw reader.wrong("grid", "a list of extents such as \"x.shape[0]\", or numbers", grid);
    }
    out.grid.push_back(axis.is_string() ? axis.get<std::string>() : axis.dump());
  }
}

}  // namespace

Description read_description(const std::string& file) {
  const Reader reader(file);
  const Json json = reader.parse();
  Description out;
  out.file = file;
  out.entry = reader.text(json, "name");
  const Json& target = reader.member(json, "target");
  if (reader.text(target, "backend") != "cuda") throw reader.wrong("target", "of the backend cuda", target);
  const std::int64_t warp = reader.number(target, "warp_size", 32, 32);
  out.threads = static_cast<std::uint32_t>(reader.number(json, "num_warps", 1, 32) * warp);
  out.shared_bytes = static_cast<std::uint32_t>(reader.number(json, "shared", 0, 1 << 20));
  refuse_special_launches(reader, json);
  read_scratch(reader, json, out);
  read_launch(reader, json, out);
  return out;
}

}  // namespace mulligan::cuda::triton
