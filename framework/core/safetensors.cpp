#include "framework/core/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/mapped_file.h"
#include "framework/core/parse_json.h"
#include "framework/core/sha256.h"

namespace mulligan {
namespace {

static_assert(std::endian::native == std::endian::little, "files are little-endian and mapped as they are");

// In the order of mlg_dtype.
constexpr std::array<std::string_view, MLG_I8 + 1> kNames = {"F32", "BF16", "F16", "F64", "I32",
                                                             "I64", "U16",  "U8",  "I8"};

constexpr std::string_view kMetadataKey = "__metadata__";
constexpr std::uint64_t kPrefixBytes = 8;
// A header larger than this is corrupt: a million tensors need less.
constexpr std::uint64_t kMaxHeaderBytes = 256u << 20;

// Number of elements times the element size, or nothing on overflow.
std::optional<std::uint64_t> byte_count(const std::vector<std::int64_t>& shape, std::size_t element_size) {
  std::uint64_t count = element_size;
  for (const std::int64_t extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(count, static_cast<std::uint64_t>(extent), &count)) return {};
  }
  return count;
}

class HeaderReader {
 public:
  HeaderReader(const std::filesystem::path& path, std::span<const std::byte> file)
      : path_(path), file_(file) {}

  nlohmann::json parse() {
    if (file_.size() < kPrefixBytes)
      throw corrupt("it has {} bytes, fewer than the 8 of its length field", file_.size());
    std::uint64_t length = 0;
    std::memcpy(&length, file_.data(), kPrefixBytes);
    if (length > kMaxHeaderBytes || length > file_.size() - kPrefixBytes) {
      throw corrupt("its header claims {} bytes but the file holds {} after the length field", length,
                    file_.size() - kPrefixBytes);
    }
    const std::string_view text(reinterpret_cast<const char*>(file_.data()) + kPrefixBytes, length);
    // The JSON library allows a byte order mark, and a zero byte to it is the end.
    if (text.empty() || text.front() == '\xEF' || text.find('\0') != text.npos)
      throw corrupt("its header is not JSON");
    nlohmann::json header = parse_json(text);
    if (!header.is_object()) throw corrupt("its header is not a JSON object");
    if (const std::string key = repeated_key(text); !key.empty())
      throw corrupt("its header has the name '{}' twice", key);
    data_ = file_.subspan(kPrefixBytes + length);
    return header;
  }

  StoredTensor entry(const std::string& name, const nlohmann::json& value) const {
    const auto require = [&](bool condition, std::string_view what) {
      if (!condition) throw corrupt("tensor '{}' has {}", name, what);
    };
    const auto is_size = [](const nlohmann::json& number) { return number.is_number_unsigned(); };
    require(value.is_object() && value.contains("dtype") && value.contains("shape") &&
                value.contains("data_offsets"),
            "no dtype, shape or data_offsets");
    const auto& type = value["dtype"];
    const auto& shape = value["shape"];
    const auto& offsets = value["data_offsets"];
    require(type.is_string(), "a dtype that is not a string");
    require(shape.is_array() && std::all_of(shape.begin(), shape.end(), is_size), "an invalid shape");
    require(offsets.is_array() && offsets.size() == 2 && std::all_of(offsets.begin(), offsets.end(), is_size),
            "invalid data_offsets");
    const auto type_name = type.get<std::string>();
    const auto known = std::ranges::find(kNames, type_name);
    require(known != kNames.end(), fmt::format("the unknown dtype '{}'", type_name));

    StoredTensor result{name, static_cast<DType>(known - kNames.begin()), {}, {}};
    for (const auto& extent : shape) {
      require(extent.get<std::uint64_t>() <= std::uint64_t{INT64_MAX}, "an extent beyond 2^63");
      result.shape.push_back(extent.get<std::int64_t>());
    }
    const auto begin = offsets[0].get<std::uint64_t>(), end = offsets[1].get<std::uint64_t>();
    require(begin <= end && end <= data_.size(),
            fmt::format("bytes {}..{} in a data section of {}", begin, end, data_.size()));
    const auto expected = byte_count(result.shape, sdk::dtype_bytes(result.type));
    require(expected && *expected == end - begin,
            fmt::format("a shape that does not fit its {} bytes", end - begin));
    result.bytes = data_.subspan(begin, end - begin);
    return result;
  }

  // Sorts by position and demands that the ranges tile the data section.
  void check_tiling(std::vector<StoredTensor>& tensors) const {
    std::ranges::stable_sort(tensors, {}, [](const StoredTensor& tensor) {
      return std::pair(tensor.bytes.data(), tensor.bytes.size());
    });
    std::int64_t position = 0;
    for (const StoredTensor& tensor : tensors) {
      const std::int64_t begin = tensor.bytes.data() - data_.data();
      if (begin != position) {
        throw corrupt("tensor '{}' starts at byte {} where {} was expected ({})", tensor.name, begin,
                      position, begin < position ? "overlap" : "gap");
      }
      position += static_cast<std::int64_t>(tensor.bytes.size());
    }
    if (position != static_cast<std::int64_t>(data_.size())) {
      throw corrupt("its tensors cover {} bytes of a data section of {}", position, data_.size());
    }
  }

  std::map<std::string, std::string> metadata(const nlohmann::json& value) const {
    std::map<std::string, std::string> result;
    if (!value.is_object() && !value.is_null()) throw corrupt("its __metadata__ is not an object");
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string()) throw corrupt("its __metadata__ entry '{}' is not a string", key);
      result[key] = text.get<std::string>();
    }
    return result;
  }

 private:
  template <typename... Args>
  Error corrupt(fmt::format_string<Args...> format, Args&&... args) const {
    return data_error("'{}' is not a valid safetensors file: {}; write or copy it again", path_.string(),
                      fmt::format(format, std::forward<Args>(args)...));
  }

  const std::filesystem::path& path_;
  std::span<const std::byte> file_;
  std::span<const std::byte> data_;
};

}  // namespace

std::string_view stored_name(DType type) {
  return kNames[static_cast<std::size_t>(type)];
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : path_(path) {
  const auto mapping = std::make_shared<MappedFile>(path);
  mapping_ = mapping;
  HeaderReader reader(path_, mapping->bytes());
  const nlohmann::json header = reader.parse();
  for (const auto& [name, value] : header.items()) {
    if (name == kMetadataKey) {
      metadata_ = reader.metadata(value);
    } else {
      tensors_.push_back(reader.entry(name, value));
    }
  }
  reader.check_tiling(tensors_);
  for (std::size_t i = 0; i < tensors_.size(); ++i) index_[tensors_[i].name] = i;
}

const StoredTensor* SafetensorsFile::find(std::string_view name) const {
  const auto position = index_.find(name);
  return position == index_.end() ? nullptr : &tensors_[position->second];
}

const StoredTensor& SafetensorsFile::at(std::string_view name) const {
  const StoredTensor* tensor = find(name);
  if (tensor == nullptr) throw data_error("'{}' holds no tensor named '{}'", path_.string(), name);
  return *tensor;
}

std::string tensors_sha256(const std::vector<StoredTensor>& tensors) {
  std::vector<const StoredTensor*> order;
  for (const StoredTensor& tensor : tensors) order.push_back(&tensor);
  std::ranges::sort(order, {}, [](const StoredTensor* tensor) -> std::string_view { return tensor->name; });
  Sha256 hash;
  for (const StoredTensor* tensor : order) {
    hash.update(nlohmann::json{tensor->name, stored_name(tensor->type), tensor->shape}.dump());
    hash.update(tensor->bytes);
  }
  return hash.hex();
}

void write_safetensors(const std::filesystem::path& path, const std::vector<StoredTensor>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::vector<const StoredTensor*> order;
  for (const StoredTensor& tensor : tensors) order.push_back(&tensor);
  std::stable_sort(order.begin(), order.end(), [](const StoredTensor* a, const StoredTensor* b) {
    return sdk::dtype_bytes(a->type) > sdk::dtype_bytes(b->type);
  });
  nlohmann::json header = nlohmann::json::object();
  if (!metadata.empty()) header[std::string(kMetadataKey)] = metadata;
  std::uint64_t position = 0;
  for (const StoredTensor* tensor : order) {
    const auto expected = byte_count(tensor->shape, sdk::dtype_bytes(tensor->type));
    if (!expected || *expected != tensor->bytes.size()) {
      throw run_error("cannot write '{}': tensor '{}' has {} bytes, which is not its shape", path.string(),
                      tensor->name, tensor->bytes.size());
    }
    if (tensor->name == kMetadataKey || header.contains(tensor->name)) {
      throw run_error("cannot write '{}': the tensor name '{}' repeats or is reserved", path.string(),
                      tensor->name);
    }
    header[tensor->name] = {{"dtype", stored_name(tensor->type)},
                            {"shape", tensor->shape},
                            {"data_offsets", {position, position + tensor->bytes.size()}}};
    position += tensor->bytes.size();
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  const std::uint64_t length = text.size();
  std::vector<std::string_view> parts{{reinterpret_cast<const char*>(&length), sizeof(length)}, text};
  for (const StoredTensor* tensor : order) {
    parts.emplace_back(reinterpret_cast<const char*>(tensor->bytes.data()), tensor->bytes.size());
  }
  write_file_atomically(path, parts);
}

}  // namespace mulligan
