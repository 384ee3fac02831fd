// read_json_object: a file that is one JSON object, such as result.json of a run.
#pragma once

#include <exception>
#include <filesystem>
#include <optional>
#include <string>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/parse_json.h"

namespace mulligan {

// read(). Throws data_error that names the file where `read` throws something other than Error, as the library does for members
// that are missing or of another type.
template <typename Read>
auto read_as_written(const std::filesystem::path& path, const char* remedy, Read&& read) {
  try {
    return read();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw data_error("'{}' is not as mulligan writes it ({}); {}.", path.string(), error.what(), remedy);
  }
}

// convert(object), by read_as_written(). Throws data_error with `remedy` where the file is not a JSON object.
template <typename Json, typename Convert>
auto read_json_object(const std::filesystem::path& path, Convert&& convert,
                      const char* remedy = "make it anew or remove it") {
  const std::string text = read_file(path, kLargestDescription);
  const Json json = parse_json<Json>(text);
  if (!json.is_object()) {
    throw data_error("'{}' is not a JSON object, so the file is damaged; {}.", path.string(), remedy);
  }
  if (const std::string key = repeated_key(text); !key.empty()) {
    throw data_error("'{}' says '{}' twice in one object, so what it says is not certain; {}.", path.string(),
                     key, remedy);
  }
  return read_as_written(path, remedy, [&] { return convert(json); });
}

// {"NAME": value, ...} of a list or map of named values.
template <typename Pairs>
nlohmann::ordered_json object_of(const Pairs& pairs) {
  auto object = nlohmann::ordered_json::object();
  for (const auto& [name, value] : pairs) object[name] = value;
  return object;
}

// null stands for a number that is not there, in both directions.
template <typename Json>
std::optional<double> number_or_null(const Json& json) {
  return json.is_null() ? std::nullopt : std::optional(json.template get<double>());
}
template <typename Json, typename T>
Json value_or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

}  // namespace mulligan
