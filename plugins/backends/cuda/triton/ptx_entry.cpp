#include "plugins/backends/cuda/triton/compiled_file.h"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

namespace mulligan::cuda::triton {
namespace {

// The word of `text` from `at` on, which ends before white space or a mark; moves `at` to its end.
std::string next_word(const std::string& text, std::size_t& at) {
  const std::size_t begin = std::min(text.find_first_not_of(" \t\r\n", at), text.size());
  at = std::min(text.find_first_of(" \t\r\n(){}[],;", begin), text.size());
  return text.substr(begin, at - begin);
}

// Of ".param .u64 .ptr .global .align 1 a" from after ".param" on: "u64"; of ".align 64 .b8 b[128]": "b8[128]".
std::string parameter_type(const std::string& head, std::size_t at) {
  std::string type = next_word(head, at);
  if (type == ".align") {
    next_word(head, at);
    type = next_word(head, at);
  }
  const std::size_t end = std::min(head.find_first_of("[,)", at), head.size());
  const std::size_t extent = head.find(']', end);
  if (end < head.size() && head[end] == '[' && extent != head.npos)
    type += head.substr(end, extent - end + 1);
  return type.substr(std::min<std::size_t>(1, type.size()));
}

int number_of(const std::string& architecture) {
  return architecture.starts_with("sm_") ? std::atoi(architecture.c_str() + 3) : 0;
}

}  // namespace

bool ptx_runs_on(const std::string& target, const std::string& device) {
  const int wanted = number_of(target), present = number_of(device);
  if (wanted == 0) return false;
  if (target.back() == 'a') return present == wanted;
  if (target.back() == 'f') return present / 10 == wanted / 10 && present >= wanted;
  return present >= wanted;
}

PtxEntry read_ptx_entry(const std::string& text, const std::string& name, const std::string& file) {
  static const std::string target = ".target ", entry = ".entry ", parameter = ".param ",
                           threads = ".reqntid ";
  std::size_t at = text.find(target);
  if (at == text.npos)
    throw std::runtime_error(file + " is not PTX: it has no .target; name the .ptx that Triton wrote");
  at += target.size();
  PtxEntry found;
  found.target = next_word(text, at);
  std::string others;
  while ((at = text.find(entry, at)) != text.npos) {
    at += entry.size();
    if (const std::string other = next_word(text, at); other != name) {
      others += (others.empty() ? "" : ", ") + other;
      continue;
    }
    const std::size_t end = text.find_first_of("{;", at);
    if (end == text.npos)
      throw std::runtime_error(file + " is cut off in the middle of its PTX; compile it again");
    const std::string head = text.substr(at, end - at);
    for (std::size_t i = 0; (i = head.find(parameter, i)) != head.npos; i += parameter.size())
      found.parameters.push_back(parameter_type(head, i + parameter.size()));
    if (std::size_t i = head.find(threads); i != head.npos) {
      i += threads.size();
      found.threads = 1;
      do {
        found.threads *= static_cast<std::uint32_t>(std::strtoul(next_word(head, i).c_str(), nullptr, 10));
      } while (i < head.size() && head[i++] == ',');
    }
    return found;
  }
  throw std::runtime_error(file + " has no entry point " + name + "; " +
                           (others.empty() ? "it has none at all" : "it has " + others));
}

}  // namespace mulligan::cuda::triton
