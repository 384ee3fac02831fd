// What a folder of tries remembers.
#include <fmt/format.h>

#include <algorithm>

#include "framework/core/file.h"
#include "framework/core/json_file.h"
#include "tools/try/try.h"

namespace mulligan::tries {
namespace {

namespace fs = std::filesystem;

// The first five columns are autoresearch's.
constexpr std::string_view head =
    "commit\tval_bpb\tmemory_gb\tstatus\tdescription\tdelta\tp\tpairs\tseconds\tdigest";

std::string row_of(const Json& record) {
  const auto number = [&](const char* key, int digits, const char* absent = "") {
    return record.contains(key) ? fmt::format("{:.{}f}", record.at(key).get<double>(), digits) : absent;
  };
  const auto text = [&](const char* key) { return record.at(key).get<std::string>(); };
  return fmt::format("{}\t{}\t{:.1f}\t{}\t{}\t{}\t{}\t{}\t{}\t{}", text("id"),
                     number("val_bpb", 6, "0.000000"), record.value("peak_memory_mb", 0.0) / 1000,
                     text("status"), text("note"), number("delta", 6), number("p", 4),
                     record.value("pairs", 0), number("run_seconds", 1), text("config"));
}

}  // namespace

Memory::Memory(fs::path log) : log_(std::move(log)) {
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(log_ / "tries", absent)) {
    const fs::path file = entry.path() / "try.json";
    if (!fs::exists(file)) continue;
    const auto checked = [&](const Json& json) {
      json.at("number").get<int>();
      row_of(json);
      if (json.at("id") != entry.path().filename().string()) throw std::runtime_error("another try's id");
      return json;
    };
    tries_.push_back(
        read_json_object<Json>(file, checked, "move its folder away, and the try is made again"));
  }
  std::ranges::sort(tries_, {}, [](const Json& json) { return json.at("number").get<int>(); });
  read_table();
}

void Memory::read_table() {
  const fs::path file = log_ / "results.tsv";
  if (!fs::exists(file)) {
    for (const Json& record : tries_) {
      if (record.at("status") != "running") rows_.push_back(row_of(record));
    }
    return;
  }
  const std::string text = read_file(file, kLargestDescription);
  for (std::size_t at = 0, line = 1; at < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string row = text.substr(at, end - at);
    const bool sound =
        line == 1 ? row == head : std::ranges::count(row, '\t') == std::ranges::count(head, '\t');
    if (!sound || end == text.size())
      throw data_error(
          "'{}', line {}, is not a row of {} columns; repair it, or move the file away: it is then written anew "
          "from '{}'.",
          file.string(), line, std::ranges::count(head, '\t') + 1, (log_ / "tries").string());
    if (line > 1) rows_.push_back(std::move(row));
    at = end + 1;
  }
}

const Json* Memory::find(const std::string& id) const {
  const auto found = std::ranges::find_if(tries_, [&](const Json& json) { return json.at("id") == id; });
  return found == tries_.end() ? nullptr : &*found;
}

void Memory::save(Json& record) {
  const std::string id = record.at("id");
  auto place = std::ranges::find_if(tries_, [&](const Json& json) { return json.at("id") == id; });
  if (place == tries_.end()) {
    record["number"] = tries_.empty() ? 0 : tries_.back().at("number").get<int>() + 1;
    place = tries_.insert(tries_.end(), record);
  }
  *place = record;
  write_file_atomically(folder(id) / "try.json", record.dump(1) + "\n");
  if (record.at("status") == "running") return;
  std::erase_if(rows_, [&](const std::string& row) { return row.starts_with(id + "\t"); });
  rows_.push_back(row_of(record));
  write_file_atomically(log_ / "results.tsv", fmt::format("{}\n{}\n", head, fmt::join(rows_, "\n")));
}

double expected_false_keeps(const std::vector<Json>& tries) {
  double sum = 0;
  for (const Json& record : tries) {
    for (const Json& look : record.value("looks", Json::array())) sum += look.at("alpha").get<double>();
  }
  return sum;
}

}  // namespace mulligan::tries
