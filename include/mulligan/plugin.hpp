// C++ side of every plugin kind: errors, configuration schema, table header. Include the header of your kind
// (optimizer.hpp, loss.hpp, schedule.hpp, backend.hpp), which includes this one.
//
// A plugin class derives from the base of its kind and declares
//   static constexpr const char* summary = "one line for `mulligan plugins`";
// and, where they apply,
//   static constexpr unsigned state_version = 1;       // of what it keeps in checkpoints; 0 when absent
//   static inline const sdk::Schema<Config> schema{...};   // its TOML keys; the constructor then takes a
//                                                          // const Config&
//   static inline const mlg_kernel kernels[] = {...};  // device functions that it brings (cpu_kernel.hpp)
#pragma once

#include <mulligan/abi.h>
#include <mulligan/schema.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <iterator>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>

#if defined(__GNUC__)
#define MULLIGAN_EXPORT __attribute__((visibility("default")))
#else
#error "mulligan plugins are built with GCC or Clang"
#endif

// Hidden: otherwise the dynamic linker would merge equally named inline functions and statics of two plugins.
#pragma GCC visibility push(hidden)

namespace mulligan::sdk {

// A plugin's function may throw this or any std::exception; the host shows what() to the user. Write one sentence: what is
// wrong, where, how to fix it.
using Error = std::runtime_error;

// Runs `body`. An exception becomes the sentence of mlg_error, which is kept until this thread's next failure.
template <typename Body>
mlg_error guarded(Body&& body) noexcept {
  thread_local std::string message;
  try {
    body();
    return nullptr;
  } catch (const std::bad_alloc&) {
    return "the plugin ran out of memory; make the model or the batch smaller";
  } catch (const std::exception& error) {
    try {
      message = error.what();
      return message.c_str();
    } catch (...) {
      return "the plugin failed and ran out of memory while saying why";
    }
  } catch (...) {
    return "the plugin threw something that is not a std::exception; throw mulligan::sdk::Error instead";
  }
}

// Turns a status of the host into an exception, so that plugin code needs no checks of its own.
inline void check(mlg_error error) {
  if (error) throw Error(error);
}

// The host's services; set before the first object is made.
inline const mlg_host* host_services = nullptr;

enum class LogLevel : std::int32_t { debug = 0, info = 1, warning = 2 };

// Writes one line to the run's log. Not for the step path.
inline void log(LogLevel level, const std::string& message) {
  if (host_services && host_services->log)
    host_services->log(static_cast<std::int32_t>(level), message.c_str());
}

// The common part of a table, filled from the class's declarations.
template <typename Class, typename Table>
mlg_plugin_header make_header(mlg_kind kind, const char* name) {
  mlg_plugin_header header{};
  header.magic = MLG_ABI_MAGIC;
  header.abi_major = MLG_ABI_MAJOR;
  header.abi_minor = MLG_ABI_MINOR;
  header.struct_size = sizeof(Table);
  header.kind = kind;
  header.name = name;
  header.summary = Class::summary;
  if constexpr (requires { Class::state_version; }) header.state_version = Class::state_version;
  if constexpr (requires { Class::schema; }) {
    header.key_count = static_cast<std::uint32_t>(Class::schema.rows().size());
    header.keys = Class::schema.rows().data();
  }
  if constexpr (requires { Class::kernels; }) {
    header.kernel_count = static_cast<std::uint32_t>(std::size(Class::kernels));
    header.kernels = std::data(Class::kernels);
  }
  return header;
}

// create() of every table: reads the configuration and makes the object, which is a Base* from then on.
template <typename Class, typename Base>
mlg_error create_instance(const mlg_host* host, const mlg_config* config, void** instance) noexcept {
  return guarded([&] {
    host_services = host;
    std::unique_ptr<Base> object;
    if constexpr (requires { Class::schema; }) {
      object = std::make_unique<Class>(Class::schema.read(*config));
    } else {
      (void)config;
      object = std::make_unique<Class>();
    }
    *instance = object.release();
  });
}

template <typename Base>
void destroy_instance(void* instance) noexcept {
  delete static_cast<Base*>(instance);
}

// The table of a class that is derived from the base of its kind, without the kind's own functions.
template <typename Class, typename Base, typename Table>
Table new_table(mlg_kind kind, const char* name) {
  static_assert(std::is_base_of_v<Base, Class>,
                "derive the class from the base of its kind in mulligan::sdk");
  Table table{};
  table.header = make_header<Class, Table>(kind, name);
  table.create = create_instance<Class, Base>;
  table.destroy = destroy_instance<Base>;
  return table;
}

}  // namespace mulligan::sdk

#pragma GCC visibility pop

// Exports mlg_plugin() (abi.h). The macros of each kind call this; their `name` is a bare identifier, [a-z0-9_]+.
#define MULLIGAN_EXPORT_PLUGIN(table_expression)          \
  extern "C" {                                            \
  MULLIGAN_EXPORT const mlg_plugin_header* mlg_plugin() { \
    static const auto table = table_expression;           \
    return &table.header;                                 \
  }                                                       \
  }                                                       \
  static_assert(true, "a semicolon follows the macro")
