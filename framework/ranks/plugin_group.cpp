#include "framework/ranks/plugin_group.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

namespace mulligan {
namespace {

// Runs `body`; an exception becomes a sentence that is valid until this thread's next call.
template <typename Body>
mlg_error told(Body&& body) {
  thread_local std::string sentence;
  try {
    body();
    return nullptr;
  } catch (const std::exception& error) {
    sentence = error.what();
    return sentence.c_str();
  }
}

}  // namespace

PluginGroup::PluginGroup(HostGroup& group, std::string name, std::string interface_name)
    : group_(group), name_(std::move(name)), interface_name_(std::move(interface_name)) {
  table_ = {};
  table_.rank = group.rank();
  table_.size = group.world_size();
  table_.local_rank = group.local_rank();
  table_.local_size = group.local_size();
  table_.interface_name = interface_name_.c_str();
  table_.self = this;
  table_.put = [](void* self, const char* key, const void* value, std::size_t bytes) {
    auto& group = *static_cast<PluginGroup*>(self);
    return told([&] { group.group_.put(group.name_ + "/" + key, {static_cast<const char*>(value), bytes}); });
  };
  table_.get = [](void* self, const char* key, void* value, std::size_t* bytes, double seconds) {
    auto& group = *static_cast<PluginGroup*>(self);
    return told([&] {
      const std::string found = group.group_.get(group.name_ + "/" + key, seconds);
      std::memcpy(value, found.data(), std::min(*bytes, found.size()));
      *bytes = found.size();
    });
  };
}

}  // namespace mulligan
