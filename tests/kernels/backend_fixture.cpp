#include "tests/kernels/backend_fixture.h"

#include <dlfcn.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <sstream>
#include <stdexcept>

namespace mulligan::kernel_test {
namespace {

constexpr std::size_t kGuardBytes = 256;
constexpr std::byte kGuard{0xA5};
constexpr std::byte kUnwritten{0xFF};

void check(mlg_error error) {
  if (error) throw std::runtime_error(error);
}

// Resolved keys for create(): the plugin's defaults, but for those that are given.
struct Keys {
  const mlg_plugin_header* header;
  std::map<std::string, std::string> given;

  const char* text(const char* name) const {
    if (const auto known = given.find(name); known != given.end()) return known->second.c_str();
    for (std::uint32_t i = 0; i < header->key_count; ++i) {
      if (std::strcmp(header->keys[i].name, name) == 0) return header->keys[i].default_value;
    }
    throw std::runtime_error(std::string("the backend asked for the undeclared key ") + name);
  }
};

// Of keys that are no lists.
mlg_setting get(const void* self, const char* name, std::int32_t type) {
  thread_local std::string text;
  text = static_cast<const Keys*>(self)->text(name);
  mlg_setting setting{type == MLG_KEY_BOOL ? text == "true" : std::atoll(text.c_str()),
                      std::atof(text.c_str()), nullptr, nullptr, 0};
  if (type == MLG_KEY_STRING && text.size() >= 2)
    text = text.substr(1, text.size() - 2);  // without TOML's quotes
  setting.text = text.c_str();
  return setting;
}

// Device memory between two guards.
class GuardedBuffer {
 public:
  GuardedBuffer(const BackendFixture& backend, std::string name, std::vector<std::byte> contents)
      : backend_(backend), name_(std::move(name)), contents_(std::move(contents)) {
    std::vector<std::byte> whole(contents_.size() + 2 * kGuardBytes, kGuard);
    std::copy(contents_.begin(), contents_.end(), whole.begin() + kGuardBytes);
    check(table().allocate(backend_.instance(), whole.size(), &memory_));
    check(table().upload(backend_.instance(), memory_, whole.data(), whole.size()));
  }
  ~GuardedBuffer() { table().free(backend_.instance(), memory_); }
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;

  void* address() const { return static_cast<std::byte*>(memory_) + kGuardBytes; }
  const std::vector<std::byte>& initial() const { return contents_; }

  // What the buffer holds now. Throws when a guard was overwritten.
  std::vector<std::byte> download() const {
    std::vector<std::byte> whole(contents_.size() + 2 * kGuardBytes);
    check(table().download(backend_.instance(), whole.data(), memory_, whole.size()));
    for (std::size_t i = 0; i < kGuardBytes; ++i) {
      if (whole[i] != kGuard) throw std::runtime_error("wrote before the start of " + name_);
      if (whole[whole.size() - 1 - i] != kGuard) throw std::runtime_error("wrote beyond the end of " + name_);
    }
    return {whole.begin() + kGuardBytes, whole.end() - kGuardBytes};
  }

 private:
  const mlg_backend_table& table() const { return backend_.table(); }
  const BackendFixture& backend_;
  std::string name_;
  std::vector<std::byte> contents_;
  void* memory_ = nullptr;
};

mlg_tensor describe(const KernelCall& call, const std::string& name) {
  mlg_tensor tensor{nullptr, MLG_ABSENT, 0, {1, 1, 1, 1}};
  const auto found = call.arguments.find(name);
  if (found == call.arguments.end()) return tensor;
  tensor.dtype = found->second.dtype;
  tensor.rank = static_cast<std::int32_t>(found->second.shape.size());
  std::copy(found->second.shape.begin(), found->second.shape.end(), tensor.shape);
  return tensor;
}

// A prepared call, released with its owner.
class Prepared {
 public:
  Prepared(const BackendFixture& backend, const Signature& signature, const KernelCall& call)
      : backend_(backend) {
    std::vector<mlg_tensor> tensors;
    for (const Parameter& parameter : signature.arguments) tensors.push_back(describe(call, parameter.name));
    std::vector<mlg_attribute> attributes;
    for (const auto& [name, value] : call.attributes) attributes.push_back({name.c_str(), value});
    const mlg_call c_call{call.kernel.c_str(), tensors.data(), static_cast<std::uint32_t>(tensors.size()),
                          attributes.data(), static_cast<std::uint32_t>(attributes.size())};
    check(backend_.table().prepare(backend_.instance(), &c_call, &prepared_, &workspace_bytes_));
  }
  ~Prepared() { backend_.table().release(backend_.instance(), prepared_); }
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;

  void bind(const std::vector<void*>& addresses, void* workspace) {
    check(backend_.table().bind(backend_.instance(), prepared_, addresses.data(), workspace));
  }
  void run(const std::vector<void*>& addresses) {
    GuardedBuffer workspace(backend_, "the workspace",
                            std::vector<std::byte>(workspace_bytes_, std::byte{0xCD}));
    bind(addresses, workspace.address());
    check(backend_.table().run(backend_.instance(), &prepared_, 1));
    check(backend_.table().synchronize(backend_.instance()));
    workspace.download();
  }

 private:
  const BackendFixture& backend_;
  void* prepared_ = nullptr;
  std::size_t workspace_bytes_ = 0;
};

// The table of the plugin library `file`. It stays loaded.
const mlg_plugin_header* load_plugin(const std::string& file) {
  // Read by GNU OpenMP when it is loaded: three threads on two cores, or with other work there, must not spin
  // for long.
  setenv("GOMP_SPINCOUNT", "1000", 0);
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) throw std::runtime_error(dlerror());
  const auto entry = reinterpret_cast<mlg_plugin_function>(dlsym(library, "mlg_plugin"));
  if (!entry) throw std::runtime_error(dlerror());
  return entry();
}

// A host's log function knows no object to write to.
std::vector<std::string>* log_lines = nullptr;

}  // namespace

KernelCall kernel_call(const std::string& kernel, const std::string& names,
                       std::initializer_list<Array> arguments, std::map<std::string, double> attributes,
                       std::map<std::string, std::string> aliases) {
  KernelCall call{kernel, {}, std::move(attributes), std::move(aliases)};
  std::istringstream words(names);
  std::string name;
  for (const Array& array : arguments) {
    if (!(words >> name)) throw std::invalid_argument(kernel + ": an argument of the call has no name");
    call.arguments[name] = array;
  }
  if (words >> name) throw std::invalid_argument(kernel + ": " + name + " has no array");
  return call;
}

std::string plugin_file(const std::string& name) {
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
  return program.parent_path().parent_path() / "lib/mulligan/plugins" / ("mulligan_" + name + ".so");
}

BackendFixture::BackendFixture(const BackendUnderTest& under_test, std::vector<std::string>* log)
    : log_(log) {
  if (log_) log_lines = log_;
  table_ = reinterpret_cast<const mlg_backend_table*>(load_plugin(under_test.file));
  static mlg_running running{};
  static const mlg_host host{[](std::int32_t, const char* line) {
                               if (log_lines) log_lines->emplace_back(line);
                             },
                             &running};
  const Keys values{&table_->header, under_test.keys};
  stops_on_bad_values_ = under_test.stops_on_bad_values;
  is_slow_ = under_test.is_slow;
  const mlg_config config{&values, get};
  check(table_->create(&host, &config, &instance_));
  std::istringstream names(under_test.kernel_plugins);
  for (std::string name; std::getline(names, name, ':');) {
    const mlg_plugin_header* plugin = load_plugin(plugin_file(name));
    check(table_->add_kernels(instance_, plugin->kernels, plugin->kernel_count, 0));
  }
}

BackendFixture::~BackendFixture() {
  if (log_ && log_lines == log_) log_lines = nullptr;
  table_->destroy(instance_);
}

KernelResult BackendFixture::run(const KernelCall& call) {
  const Signature& parameters = signature(call.kernel);
  Prepared prepared(*this, parameters, call);
  std::map<std::string, std::unique_ptr<GuardedBuffer>> buffers;
  for (const auto& [name, array] : call.arguments) {
    const Parameter* parameter = parameters.find(name);
    if (!parameter) throw std::runtime_error(call.kernel + " has no argument " + name);
    if (call.aliases.count(name)) continue;
    const std::size_t bytes = element_count(array.shape) * bytes_per_element(array.dtype);
    std::vector<std::byte> contents =
        parameter->read ? encode(array) : std::vector<std::byte>(bytes, kUnwritten);
    if (contents.size() != bytes)
      throw std::runtime_error(call.kernel + ": values of " + name + " do not fill it");
    buffers[name] = std::make_unique<GuardedBuffer>(*this, name, std::move(contents));
  }
  const auto buffer_of = [&](const std::string& name) -> GuardedBuffer* {
    const auto alias = call.aliases.find(name);
    const auto found = buffers.find(alias == call.aliases.end() ? name : alias->second);
    return found == buffers.end() ? nullptr : found->second.get();
  };
  std::vector<void*> addresses;
  for (const Parameter& parameter : parameters.arguments) {
    const GuardedBuffer* buffer = buffer_of(parameter.name);
    addresses.push_back(buffer ? buffer->address() : nullptr);
  }
  prepared.run(addresses);

  KernelResult result;
  std::map<const GuardedBuffer*, bool> may_change;
  for (const auto& [name, array] : call.arguments)
    may_change[buffer_of(name)] |= parameters.find(name)->written;
  for (const auto& [name, array] : call.arguments) {
    std::vector<std::byte> bytes = buffer_of(name)->download();
    if (!may_change[buffer_of(name)] && bytes != buffer_of(name)->initial()) {
      throw std::runtime_error(call.kernel + " changed its input " + name);
    }
    if (!parameters.find(name)->written) continue;
    result.written[name] = {array.dtype, array.shape, decode(array.dtype, bytes)};
    result.bytes[name] = std::move(bytes);
  }
  return result;
}

bool BackendFixture::refuses_values(const KernelCall& call) {
  if (stops_on_bad_values_) {
    try {
      run(call);
      return false;
    } catch (const std::runtime_error&) {
      return true;
    }
  }
  for (const auto& [name, array] : run(call).written) {
    for (const double value : array.values) {
      if (std::isnan(value)) return true;
    }
  }
  return false;
}

std::string BackendFixture::refusal(const KernelCall& call) {
  try {
    const Prepared prepared(*this, signature(call.kernel), call);
    return "";
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

std::string BackendFixture::refusal_when_bound(const KernelCall& call) {
  try {
    const Signature& parameters = signature(call.kernel);
    Prepared prepared(*this, parameters, call);
    std::vector<void*> addresses;
    std::uintptr_t next = 1 << 20;
    for (const Parameter& parameter : parameters.arguments) {
      const bool present = call.arguments.count(parameter.name) > 0;
      addresses.push_back(present ? reinterpret_cast<void*>(next += 1 << 20) : nullptr);
    }
    prepared.bind(addresses, reinterpret_cast<void*>(next + (1 << 20)));
    return "";
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

std::vector<std::string> BackendFixture::kernel_names() const {
  std::vector<std::string> names;
  for (std::uint32_t i = 0; const mlg_kernel* kernel = table_->kernel_at(instance_, i); ++i) {
    names.emplace_back(kernel->name);
  }
  return names;
}

const Signature& BackendFixture::signature(const std::string& name) const {
  // A kernel keeps its place; its table may be replaced.
  auto& [place, text, signature] = signatures_[name];
  const mlg_kernel* kernel = signature ? table_->kernel_at(instance_, place) : nullptr;
  if (!kernel) {
    for (place = 0; (kernel = table_->kernel_at(instance_, place)) && name != kernel->name;) ++place;
    if (!kernel) throw std::runtime_error("the backend has no kernel " + name);
  }
  if (text != kernel->signature) {
    text = kernel->signature;
    signature = parse_signature(text);
  }
  return *signature;
}

BackendFixture& backend_with_threads(int threads) {
  static std::map<int, std::unique_ptr<BackendFixture>> fixtures;
  auto& fixture = fixtures[threads];
  if (!fixture) fixture = std::make_unique<BackendFixture>(backend_under_test(threads));
  return *fixture;
}

BackendFixture* reference_backend() {
  static const std::unique_ptr<BackendFixture> fixture =
      reference_under_test().file.empty() ? nullptr
                                          : std::make_unique<BackendFixture>(reference_under_test());
  return fixture.get();
}

}  // namespace mulligan::kernel_test
