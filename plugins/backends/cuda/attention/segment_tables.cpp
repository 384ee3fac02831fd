#include "plugins/backends/cuda/attention/segment_tables.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace mulligan::cuda {

void SegmentTables::watch(const void* address, std::int64_t tokens, std::vector<std::int32_t> contents,
                          const void* owner, std::function<void()> written) {
  Table& table = tables_[static_cast<const char*>(address)];
  table.watchers[owner] = std::move(written);
  table.tokens = tokens;
  table.contents = std::move(contents);
  table.summary = summarise(table.contents, tokens);
}

void SegmentTables::unwatch(const void* address, const void* owner) noexcept {
  const auto table = tables_.find(static_cast<const char*>(address));
  if (table == tables_.end()) return;
  table->second.watchers.erase(owner);
  if (table->second.watchers.empty()) tables_.erase(table);
}

void SegmentTables::written(const void* device, const void* host, std::size_t bytes) {
  const char* begin = static_cast<const char*>(device);
  for (auto& [address, table] : tables_) {
    const std::size_t size = table.contents.size() * sizeof(std::int32_t);
    if (begin >= address + size || address >= begin + bytes) continue;
    const char *first = std::max(begin, address), *last = std::min(begin + bytes, address + size);
    char* kept = reinterpret_cast<char*>(table.contents.data()) + (first - address);
    // What is not known is no boundary: -1 everywhere.
    if (host)
      std::memcpy(kept, static_cast<const char*>(host) + (first - begin),
                  static_cast<std::size_t>(last - first));
    else
      std::memset(kept, 0xFF, static_cast<std::size_t>(last - first));
    table.summary = summarise(table.contents, table.tokens);
    for (const auto& [owner, told] : table.watchers) {
      if (told) told();
    }
  }
}

std::optional<SegmentSummary> SegmentTables::summary(const void* address) const {
  const auto table = tables_.find(static_cast<const char*>(address));
  return table == tables_.end() ? std::nullopt : table->second.summary;
}

}  // namespace mulligan::cuda
