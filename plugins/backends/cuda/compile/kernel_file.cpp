#include "plugins/backends/cuda/compile/kernel_file.h"

#include <mulligan/plugin.hpp>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <utility>
#include <vector>

#include "plugins/backends/cuda/compile/compile_cache.h"
#include "plugins/backends/cuda/compile/cuda_library.h"
#include "plugins/backends/cuda/compile/fingerprint.h"
#include "plugins/backends/cuda/compile/kernel_compiler.h"
#include "plugins/common/shared_library.h"

namespace mulligan::cuda {
namespace {

constexpr char kKernelMagic[8] = {'M', 'L', 'G', 'K', 'E', 'R', 'N', '1'};

// The file: magic, fingerprint of the rest; architecture, NVRTC's version, context; the texts of sources,
// each once; for each function its name, definitions, which text, and what pack() makes of it. Numbers have
// 8 bytes, the CPU's order; texts and lists are preceded by their length.
class Writer {
 public:
  void number(std::uint64_t value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void text(const std::string& value) {
    number(value.size());
    bytes_ += value;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  std::uint64_t number() {
    std::uint64_t value = 0;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string text() { return std::string(take(number())); }
  bool at_end() const { return bytes_.empty(); }

 private:
  std::string_view take(std::uint64_t count) {
    if (count > bytes_.size()) throw std::runtime_error("it ends too early");
    const std::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }
  std::string_view bytes_;
};

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path + " cannot be read: " + std::strerror(errno));
  return {std::istreambuf_iterator<char>(file), {}};
}

// Why it does not serve; empty: it does.
std::string misfit(const KernelFile& file, const CompilerOptions& options) {
  const KernelFile::Origin& origin = file.origin();
  if (origin.architecture != options.architecture)
    return "is for " + origin.architecture + ", not for " + options.architecture;
  if (origin.context != compile_context())
    return "was made by another version of mulligan, with other headers or options";
  if (options.libraries.driver_version != 0 &&
      std::atoi(origin.nvrtc_version.c_str()) > options.libraries.driver_version / 1000)
    return "was made by NVRTC " + origin.nvrtc_version + ", whose code the driver, of CUDA " +
           cuda_version_text(options.libraries.driver_version) + ", may not load";
  return {};
}

}  // namespace

KernelFile KernelFile::read(const std::string& path) {
  const std::string bytes = contents(path);
  if (bytes.size() < sizeof kKernelMagic || std::memcmp(bytes.data(), kKernelMagic, sizeof kKernelMagic) != 0)
    throw std::runtime_error(path + " is not a file of compiled kernels, or of another version of mulligan");
  try {
    Reader reader(std::string_view(bytes).substr(sizeof kKernelMagic));
    const std::uint64_t expected = reader.number();
    if (fingerprint(std::string_view(bytes).substr(sizeof kKernelMagic + sizeof expected)) != expected)
      throw std::runtime_error("its checksum is wrong");
    Origin origin;
    for (std::string* part : {&origin.architecture, &origin.nvrtc_version, &origin.context})
      *part = reader.text();
    KernelFile file(std::move(origin));
    std::vector<std::string> texts;
    for (std::uint64_t left = reader.number(); left > 0; --left) texts.push_back(reader.text());
    for (std::uint64_t left = reader.number(); left > 0; --left) {
      FunctionSource source;
      source.function = reader.text();
      for (std::uint64_t more = reader.number(); more > 0; --more)
        source.definitions.push_back(reader.text());
      source.text = texts.at(reader.number());
      file.add(source, unpack(reader.text()));
    }
    if (!reader.at_end()) throw std::runtime_error("it has bytes after its end");
    return file;
  } catch (const std::exception& fault) {
    throw std::runtime_error(path + " is damaged: " + fault.what());
  }
}

const CompiledFunction* KernelFile::find(const FunctionSource& source) const {
  const auto found = functions_.find(source);
  return found == functions_.end() ? nullptr : &found->second;
}

void KernelFile::add(const FunctionSource& source, CompiledFunction function) {
  functions_.insert_or_assign(source, std::move(function));
}

void KernelFile::write(const std::string& path) const {
  std::map<std::string, std::uint64_t> texts;  // to their places
  for (const auto& [source, function] : functions_) texts.emplace(source.text, 0);
  Writer writer;
  for (const std::string* part : {&origin_.architecture, &origin_.nvrtc_version, &origin_.context})
    writer.text(*part);
  writer.number(texts.size());
  for (std::uint64_t next = 0; auto& [text, place] : texts) {
    place = next++;
    writer.text(text);
  }
  writer.number(functions_.size());
  for (const auto& [source, function] : functions_) {
    writer.text(source.function);
    writer.number(source.definitions.size());
    for (const std::string& definition : source.definitions) writer.text(definition);
    writer.number(texts.at(source.text));
    writer.text(pack(function));
  }
  Writer whole;
  whole.number(fingerprint(writer.bytes()));
  if (!replace_file(path, std::string(kKernelMagic, sizeof kKernelMagic) + whole.bytes() + writer.bytes()))
    throw std::runtime_error(path + " cannot be written: " + std::strerror(errno));
}

std::optional<KernelFile> kernel_file_for(const CompilerOptions& options, const std::string& path) {
  if (path == "none") return std::nullopt;
  const std::filesystem::path chosen =
      !path.empty() ? std::filesystem::path(path)
                    : plugins::own_folder().parent_path() / "kernels" / (options.architecture + ".kernels");
  if (!std::filesystem::exists(chosen)) {
    if (path.empty()) return std::nullopt;
    throw std::runtime_error("backend.kernel_file: there is no file " + path);
  }
  std::string fault;
  try {
    KernelFile file = KernelFile::read(chosen.string());
    fault = misfit(file, options);
    if (fault.empty()) {
      sdk::log(sdk::LogLevel::info,
               std::to_string(file.size()) + " functions compiled ahead of time: " + chosen.string());
      return file;
    }
    fault = chosen.string() + " " + fault;
  } catch (const std::runtime_error& error) {
    fault = error.what();
  }
  sdk::log(sdk::LogLevel::warning, fault + "; its functions are taken from the cache, or compiled");
  return std::nullopt;
}

}  // namespace mulligan::cuda
