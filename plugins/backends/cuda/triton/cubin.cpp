#include "plugins/backends/cuda/triton/compiled_file.h"

#include <elf.h>

#include <cstring>
#include <stdexcept>

#include "plugins/backends/cuda/triton/signature_check.h"

namespace mulligan::cuda::triton {
namespace {

constexpr std::uint16_t kCudaMachine = 190;

// Copies a T out of the file's bytes, within bounds.
class Bytes {
 public:
  Bytes(const std::string& code, const std::string& file) : code_(code), file_(file) {}

  template <typename T>
  T at(std::uint64_t offset) const {
    if (offset > code_.size() || code_.size() - offset < sizeof(T)) throw damaged();
    T value;
    std::memcpy(&value, code_.data() + offset, sizeof value);
    return value;
  }
  // A zero-terminated string.
  std::string text(std::uint64_t offset) const {
    const std::size_t end = code_.find('\0', offset);
    if (offset > code_.size() || end == std::string::npos) throw damaged();
    return code_.substr(offset, end - offset);
  }
  std::runtime_error damaged() const {
    return std::runtime_error(file_ + " is not a complete .cubin file; compile it again");
  }

 private:
  const std::string& code_;
  const std::string& file_;
};

// The section that describes an entry point: records of a format byte, a kind byte and two bytes that are a
// value or, in format 4, the length of what follows. Kind 0x17: a parameter - its number in bytes 4 and 5,
// its size in the bits from 18 on of the word at byte 8.
std::vector<std::uint32_t> parameters_of(const Bytes& bytes, const Elf64_Shdr& section) {
  std::vector<std::uint32_t> sizes;
  std::uint64_t at = section.sh_offset;
  const std::uint64_t end = at + section.sh_size;
  while (at < end) {
    const auto format = bytes.at<std::uint8_t>(at), kind = bytes.at<std::uint8_t>(at + 1);
    const auto length = bytes.at<std::uint16_t>(at + 2);
    at += 4;
    if (format != 4) continue;
    if (kind == 0x17) {
      const auto number = bytes.at<std::uint16_t>(at + 4);
      if (number >= sizes.size()) sizes.resize(number + 1);
      sizes[number] = bytes.at<std::uint32_t>(at + 8) >> 18;
    }
    at += length;
  }
  return sizes;
}

std::uint32_t size_of(const std::string& type) {
  return type.starts_with("*") || type == "i64" ? 8 : 4;
}

}  // namespace

std::vector<std::uint32_t> read_cubin_parameters(const std::string& code, const std::string& name,
                                                 const std::string& file) {
  const Bytes bytes(code, file);
  const auto header = bytes.at<Elf64_Ehdr>(0);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_machine != kCudaMachine) {
    throw bytes.damaged();
  }
  const auto section = [&](std::uint32_t index) {
    return bytes.at<Elf64_Shdr>(header.e_shoff + std::uint64_t{index} * sizeof(Elf64_Shdr));
  };
  const std::uint64_t names = section(header.e_shstrndx).sh_offset;
  const std::string wanted = ".text." + name, information = ".nv.info." + name;
  bool found = false;
  std::vector<std::uint32_t> sizes;
  for (std::uint32_t i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr candidate = section(i);
    const std::string called = bytes.text(names + candidate.sh_name);
    found = found || called == wanted;
    if (called == information) sizes = parameters_of(bytes, candidate);
  }
  if (!found) throw std::runtime_error(file + " has no entry point " + name);
  return sizes;
}

void check_cubin(const std::string& code, const Description& description, const std::string& file) {
  const std::vector<std::uint32_t> sizes = read_cubin_parameters(code, description.entry, file);
  const std::string where = file + ": the entry point " + description.entry + " ";
  check_parameter_count(sizes.size(), description, where);
  for (std::size_t i = 0; i < description.parameters.size(); ++i) {
    const DescribedParameter& parameter = description.parameters[i];
    if (sizes[i] == size_of(parameter.type)) continue;
    throw std::runtime_error(where + "takes its parameter " + std::to_string(i + 1) + ", " + parameter.name +
                             ", in " + std::to_string(sizes[i]) + " bytes, but its description says " +
                             parameter.type + ", which has " + std::to_string(size_of(parameter.type)));
  }
}

}  // namespace mulligan::cuda::triton
