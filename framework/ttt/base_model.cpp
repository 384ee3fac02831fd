#include "framework/ttt/base_model.h"

#include "framework/graph/program.h"

namespace mulligan {

void refresh_copies(const BaseModel& model) {
  Graph copies;
  build_refresh_copies(copies, model.layouts);
  model.store.create_externals(copies);
  Program refresh(model.store.backend(), std::move(copies), "refresh");
  SharedArena arena(model.store.backend());
  arena.bind({&refresh}, model.store);
  refresh.run();
  model.store.backend().synchronize();
}

}  // namespace mulligan
