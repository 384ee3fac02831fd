// C++ side of ensemble.h: derive from Ensemble, then MULLIGAN_EXPORT_ENSEMBLE(Class, name).
#pragma once

#include <mulligan/ensemble.h>
#include <mulligan/parallel_pieces.hpp>
#include <mulligan/plugin.hpp>

#include <type_traits>
#include <utility>

#pragma GCC visibility push(hidden)

namespace mulligan::sdk {

// One weight of the centre model; members as in ensemble.h.
struct EnsembleWeight : mlg_ensemble_weight {
  explicit EnsembleWeight(const mlg_ensemble_weight& weight) : mlg_ensemble_weight(weight) {}
  bool reference() const { return member == MLG_ENSEMBLE_REFERENCE; }
  // Runs body(begin, end) over pieces of [0, count); pieces may run at once. Throws what a piece threw.
  template <typename Body>
  void parallel(std::int64_t count, std::int64_t grain, Body&& body) const {
    parallel_pieces(parallel_for, count, grain, std::forward<Body>(body));
  }
};

class Ensemble {
 public:
  virtual ~Ensemble() = default;
  // Writes all of out [rows, columns].
  virtual void make(const EnsembleWeight& weight, float* out) const = 0;
  // Bytes of one member's weight, scales included.
  virtual double stored_bytes(std::int64_t rows, std::int64_t columns) const = 0;
};

template <typename Class>
mlg_ensemble_table make_ensemble_table(const char* name) {
  auto table = new_table<Class, Ensemble, mlg_ensemble_table>(MLG_ENSEMBLE, name);
  table.make = [](void* self, const mlg_ensemble_weight* weight, float* out) -> mlg_error {
    return guarded([&] { static_cast<const Ensemble*>(self)->make(EnsembleWeight(*weight), out); });
  };
  table.stored_bytes = [](void* self, std::int64_t rows, std::int64_t columns, double* bytes) -> mlg_error {
    return guarded([&] { *bytes = static_cast<const Ensemble*>(self)->stored_bytes(rows, columns); });
  };
  return table;
}

}  // namespace mulligan::sdk

#pragma GCC visibility pop

#define MULLIGAN_EXPORT_ENSEMBLE(Class, name) \
  MULLIGAN_EXPORT_PLUGIN(mulligan::sdk::make_ensemble_table<Class>(#name))
