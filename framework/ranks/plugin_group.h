// A HostGroup as communicator plugins see it.
#pragma once

#include <mulligan/communicator.h>

#include <string>

#include "framework/ranks/host_group.h"

namespace mulligan {

// Neither copied nor moved: the table points to it.
class PluginGroup {
 public:
  // `name` stands before every key.
  PluginGroup(HostGroup& group, std::string name, std::string interface_name);
  PluginGroup(const PluginGroup&) = delete;
  PluginGroup& operator=(const PluginGroup&) = delete;
  const mlg_group& table() const { return table_; }

 private:
  HostGroup& group_;
  std::string name_, interface_name_;
  mlg_group table_;
};

}  // namespace mulligan
