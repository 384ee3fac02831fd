#include "tests/support/xml_check.h"

#include <regex>
#include <set>
#include <vector>

namespace mulligan {
namespace {

bool entities_are_sound(std::string_view text, std::string& fault) {
  static const std::regex entity("&(amp|lt|gt|quot|#39);");
  for (std::size_t at = text.find('&'); at != std::string_view::npos; at = text.find('&', at + 1)) {
    if (std::regex_search(text.begin() + static_cast<std::ptrdiff_t>(at), text.end(), entity,
                          std::regex_constants::match_continuous)) {
      continue;
    }
    fault = "no entity: " + std::string(text.substr(at, 40));
    return false;
  }
  return true;
}

// The inside of <...>, without the slashes; its attributes are taken off from the front.
bool attributes_are_sound(std::string_view tag, std::string& fault) {
  static const std::regex attribute("\\s+([-A-Za-z_:]+)=\"([^\"<]*)\"");
  std::set<std::string> names;
  auto at = tag.begin() + static_cast<std::ptrdiff_t>(std::min(tag.find_first_of(" \n\t"), tag.size()));
  for (std::match_results<std::string_view::const_iterator> found; at != tag.end(); at = found[0].second) {
    const std::string_view rest(&*at, static_cast<std::size_t>(tag.end() - at));
    if (rest.find_first_not_of(" \n\t") == std::string_view::npos) break;
    if (!std::regex_search(at, tag.end(), found, attribute, std::regex_constants::match_continuous)) {
      fault = "no attribute: " + std::string(rest);
      return false;
    }
    if (!names.insert(found[1]).second) {
      fault = "twice the attribute " + found[1].str() + " in <" + std::string(tag) + ">";
      return false;
    }
    if (!entities_are_sound(found[2].str(), fault)) return false;
  }
  return true;
}

}  // namespace

std::string xml_fault(std::string_view text) {
  std::string fault;
  std::vector<std::string> open;
  bool seen = false;
  constexpr std::string_view doctype = "<!DOCTYPE html>";
  if (text.starts_with(doctype)) text.remove_prefix(doctype.size());
  while (!text.empty()) {
    const std::size_t start = text.find('<');
    const std::string_view between = text.substr(0, start);
    if (open.empty() && between.find_first_not_of(" \n\t") != std::string_view::npos) {
      return "text outside of the outermost element: " + std::string(between.substr(0, 60));
    }
    if (!entities_are_sound(between, fault)) return fault;
    if (start == std::string_view::npos) break;
    text.remove_prefix(start);
    const std::size_t end = text.find('>');
    if (end == std::string_view::npos) return "no end of the tag: " + std::string(text.substr(0, 60));
    std::string_view tag = text.substr(1, end - 1);
    text.remove_prefix(end + 1);
    if (tag.starts_with('/')) {
      if (open.empty() || open.back() != tag.substr(1)) {
        return "</" + std::string(tag.substr(1)) + "> closes <" + (open.empty() ? "" : open.back()) + ">";
      }
      open.pop_back();
      continue;
    }
    if (open.empty() && seen) return "a second outermost element: " + std::string(tag);
    seen = true;
    const bool empty = tag.ends_with('/');
    if (empty) tag.remove_suffix(1);
    if (!attributes_are_sound(tag, fault)) return fault;
    if (!empty) open.emplace_back(tag.substr(0, tag.find_first_of(" \n\t")));
  }
  return open.empty() ? "" : "<" + open.back() + "> is not closed";
}

}  // namespace mulligan
