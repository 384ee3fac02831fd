// Tells the framework which plugin libraries this program was built with.
#pragma once

namespace mulligan {

void name_build_plugins();

}  // namespace mulligan
