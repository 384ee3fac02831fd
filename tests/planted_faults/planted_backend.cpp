// A backend with one of the faults of planted_faults.h; the cpu backend does everything else.
#include <mulligan/backend.hpp>

#include <dlfcn.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <span>

#include "planted_faults.h"

namespace {

namespace sdk = mulligan::sdk;
using planted::Bound;
using planted::Wrong;

struct Config {
  std::string fault = "none";
  int vocabulary = 0;
  int threads = 1;
};

// A call of the cpu backend, and what is done in its place.
struct Prepared {
  void* real = nullptr;
  Bound call;
  Wrong wrong;  // empty: the call itself
};

class Planted final : public sdk::Backend {
 public:
  static constexpr const char* summary = "The cpu backend with a planted fault.";
  static inline const sdk::Schema<Config> schema{
      sdk::key("fault", &Config::fault, "what is done wrongly").choices(planted::fault_names),
      sdk::key("vocabulary", &Config::vocabulary, "tokens of the model, by which its head is known"),
      sdk::key("threads", &Config::threads, "threads of the cpu backend")};

  explicit Planted(const Config& config) : fault_(config.fault), vocabulary_(config.vocabulary) {
    void* library = dlopen(MULLIGAN_CPU_BACKEND, RTLD_NOW | RTLD_LOCAL);
    if (!library) throw sdk::Error(dlerror());
    const auto plugin = reinterpret_cast<mlg_plugin_function>(dlsym(library, "mlg_plugin"));
    table_ = reinterpret_cast<const mlg_backend_table*>(plugin());
    mlg_config own{};
    own.self = &config.threads;
    own.get = [](const void* threads, const char*, std::int32_t type) -> mlg_setting {
      return {type == MLG_KEY_INT ? *static_cast<const int*>(threads) : 0, 0, "", nullptr, 0};
    };
    sdk::check(table_->create(sdk::host_services, &own, &self_));
  }
  ~Planted() override { table_->destroy(self_); }

  sdk::DeviceInfo info() const override {
    sdk::DeviceInfo info{};
    sdk::check(table_->info(self_, &info));
    return info;
  }
  void* allocate(std::size_t bytes) override {
    void* address = nullptr;
    sdk::check(table_->allocate(self_, bytes, &address));
    return address;
  }
  void free(void* address) noexcept override { table_->free(self_, address); }
  void upload(void* device, const void* host, std::size_t bytes) override;
  void download(void* host, const void* device, std::size_t bytes) override {
    sdk::check(table_->download(self_, host, device, bytes));
    if (fault_ == "forgets" && bytes >= 4096)
      static_cast<unsigned char*>(host)[bytes / 2] ^= static_cast<unsigned char>(++downloads_);
  }
  void copy(void* to, const void* from, std::size_t bytes) override {
    sdk::check(table_->copy(self_, to, from, bytes));
  }
  void zero(void* device, std::size_t bytes) override { sdk::check(table_->zero(self_, device, bytes)); }
  // Kernels of plugins are for the backend underneath.
  void add_kernels(std::span<const mlg_kernel> kernels, bool replace) override {
    sdk::check(
        table_->add_kernels(self_, kernels.data(), static_cast<std::uint32_t>(kernels.size()), replace));
  }
  const mlg_kernel* kernel_at(std::uint32_t index) const noexcept override {
    return table_->kernel_at(self_, index);
  }
  void* prepare(const sdk::Call& call, std::size_t& workspace_bytes) override;
  void bind(void* prepared, void* const* addresses, void* workspace) override {
    auto& own = *static_cast<Prepared*>(prepared);
    for (std::size_t i = 0; i < own.call.arguments.size(); ++i) own.call.arguments[i].data = addresses[i];
    if (own.real) sdk::check(table_->bind(self_, own.real, addresses, workspace));
  }
  void run(std::span<void* const> prepared) override {
    for (void* const handle : prepared) {
      auto& own = *static_cast<Prepared*>(handle);
      const auto real = [&] {
        if (own.real) sdk::check(table_->run(self_, &own.real, 1));
      };
      if (own.wrong) {
        own.wrong(own.call, real);
      } else {
        real();
      }
    }
  }
  void release(void* prepared) noexcept override {
    auto* own = static_cast<Prepared*>(prepared);
    if (own == norm_) norm_ = nullptr;
    if (own == head_) head_ = nullptr;
    if (own->real) table_->release(self_, own->real);
    delete own;
  }
  void synchronize() override { sdk::check(table_->synchronize(self_)); }
  mlg_determinism determinism() const noexcept override {
    return static_cast<mlg_determinism>(table_->determinism(self_));
  }
  mlg_queue queue() override {
    mlg_queue queue{};
    sdk::check(table_->queue(self_, &queue));
    return queue;
  }

 private:
  bool is_head(const Bound& call) const {
    return call.kernel == "matmul" && vocabulary_ > 0 && call.arguments[2].shape[1] == vocabulary_ &&
           call.attribute("transpose_a") == 0 && call.attribute("transpose_b") == 1;
  }
  void change_attributes(Bound& call);
  void plant(Prepared& own);

  std::string fault_;
  int vocabulary_;
  const mlg_backend_table* table_ = nullptr;
  void* self_ = nullptr;
  // Of the calls prepared so far.
  Prepared *norm_ = nullptr, *head_ = nullptr;
  bool after_attention_ = false;
  std::vector<unsigned char> last_upload_;
  unsigned downloads_ = 0;
};

void Planted::upload(void* device, const void* host, std::size_t bytes) {
  const auto* begin = static_cast<const unsigned char*>(host);
  std::vector<unsigned char> changed(begin, begin + bytes);
  const std::size_t count = bytes / 4;
  auto* floats = reinterpret_cast<float*>(changed.data());
  auto* ids = reinterpret_cast<std::int32_t*>(changed.data());
  // A row's tokens come first, its targets, as long, next: ids of the vocabulary.
  const bool looks_like_ids =
      bytes % 4 == 0 && count >= 8 && vocabulary_ > 0 &&
      std::all_of(ids, ids + count, [&](std::int32_t id) { return id >= 0 && id < vocabulary_; });
  const bool targets = looks_like_ids && last_upload_.size() == bytes;
  std::vector<unsigned char> original = changed;
  if (targets && fault_ == "labels_are_inputs") changed = last_upload_;
  if (targets && fault_ == "shuffled_targets") std::reverse(ids, ids + count);
  if (fault_ == "bf16_as_f16" && !looks_like_ids && bytes % 4 == 0 && count >= 8192)
    std::transform(floats, floats + count, floats, planted::bf16_bits_as_f16);
  if (fault_ == "nans" && !looks_like_ids && bytes % 4 == 0 && count >= 8192)
    floats[count / 3] = std::nanf("");
  if (fault_ == "mistakes" && !looks_like_ids && bytes >= 4096) changed[bytes / 2] ^= 1;
  last_upload_ = targets || !looks_like_ids ? std::vector<unsigned char>() : std::move(original);
  sdk::check(table_->upload(self_, device, changed.data(), bytes));
}

void* Planted::prepare(const sdk::Call& call, std::size_t& workspace_bytes) {
  auto own = std::make_unique<Prepared>();
  own->call.kernel = call.kernel;
  own->call.arguments.assign(call.arguments, call.arguments + call.argument_count);
  for (std::uint32_t i = 0; i < call.attribute_count; ++i) {
    own->call.attribute_names.emplace_back(call.attributes[i].name);
    own->call.attributes.push_back(call.attributes[i].value);
  }
  change_attributes(own->call);
  std::vector<mlg_attribute> attributes;
  for (std::size_t i = 0; i < own->call.attributes.size(); ++i)
    attributes.push_back({own->call.attribute_names[i].c_str(), own->call.attributes[i]});
  sdk::Call changed = call;
  changed.attributes = attributes.data();
  const mlg_error error = table_->prepare(self_, &changed, &own->real, &workspace_bytes);
  if (error && fault_ != "swallows") throw sdk::Error(error);
  if (error) own->real = nullptr;
  plant(*own);
  return own.release();
}

// Faults that are another number in a call.
void Planted::change_attributes(Bound& call) {
  const auto set = [&](std::string_view name, double value) {
    const auto found = std::find(call.attribute_names.begin(), call.attribute_names.end(), name);
    if (found != call.attribute_names.end())
      call.attributes[static_cast<std::size_t>(found - call.attribute_names.begin())] = value;
  };
  if (call.kernel == "attention_fwd") {
    after_attention_ = true;
    if (fault_ == "unscaled_scores") set("softmax_scale", 1);
    return;
  }
  if (call.kernel == "embedding_fwd") after_attention_ = false;  // another forward pass
  if (call.kernel != "matmul") return;
  if (fault_ == "unscaled_logits" && is_head(call)) set("alpha", 8);
  const bool square = call.arguments[1].shape[0] == call.arguments[1].shape[1];
  if (fault_ == "transposed_o_proj" && after_attention_ && square) set("transpose_b", 0);
  after_attention_ = false;
}

// A tensor's numbers; none where it is not f32.
std::span<float> floats_of(const mlg_tensor& tensor) {
  if (tensor.dtype != MLG_F32) return {};
  return {static_cast<float*>(tensor.data),
          static_cast<std::size_t>(tensor.shape[0] * tensor.shape[1] * tensor.shape[2] * tensor.shape[3])};
}

// Faults that are another computation.
void Planted::plant(Prepared& own) {
  const std::string& kernel = own.call.kernel;
  const auto after = [&](auto change) {
    own.wrong = [change](const Bound& call, const std::function<void()>& real) {
      real();
      change(call);
    };
  };
  const auto copied_to = [](std::size_t result) {
    return [result](const Bound& call, const auto&) { planted::copied(call, result); };
  };
  if ((fault_ == "rope_pairs" || fault_ == "rope_head_0") &&
      (kernel == "qk_norm_rope_fwd" || kernel == "qkv_split_norm_rope_fwd"))
    after([this](const Bound& call) { planted::wrong_rotation(call, fault_); });
  if ((fault_ == "not_causal" || fault_ == "across_documents") && kernel == "attention_fwd")
    after([this](const Bound& call) { planted::wrong_attention(call, fault_); });
  if (fault_ == "no_softcap" && kernel == "softcap_fwd") own.wrong = copied_to(1);
  if (fault_ == "missing_bias" && kernel == "row_bias_fwd") own.wrong = copied_to(2);
  if (kernel == "rms_norm_fwd" || kernel == "lane_mean_norm_fwd" || kernel == "weighted_rms_norm_fwd")
    norm_ = &own;
  if (is_head(own.call)) {
    head_ = &own;
    if (fault_ == "no_final_norm" && norm_) {
      norm_->wrong = copied_to(norm_->call.kernel == "rms_norm_fwd" ? 1U : 2U);
      if (norm_->call.kernel == "lane_mean_norm_fwd")
        norm_->wrong = [](const Bound& call, const auto&) { planted::unnormed_lane_mean(call); };
    }
  }
  if (kernel == "cross_entropy_fwd" && fault_ == "stale_logits" && head_) {
    head_->wrong = [done = false](const Bound&, const std::function<void()>& real) mutable {
      if (!done) real();
      done = true;
    };
  }
  if (kernel == "cross_entropy_fwd" && fault_ == "unfinished_losses") {
    own.wrong = [](const Bound& call, const std::function<void()>& real) {
      const std::span<float> losses = floats_of(call.arguments[2]), rest = losses.last(losses.size() / 4);
      const std::vector<float> before(rest.begin(), rest.end());
      real();
      std::copy(before.begin(), before.end(), rest.begin());
    };
  }
  if (kernel == "attention_bwd" && fault_ == "short_gradients") {
    after([](const Bound& call) {
      for (float& dq : floats_of(call.arguments[7])) dq *= 0.9F;
    });
  }
  if (kernel == "matmul" && fault_ == "no_two_alike") {
    after([](const Bound& call) {
      static unsigned runs = 0;  // of all instances
      const std::span<float> c = floats_of(call.arguments[2]);
      if (!c.empty()) c[0] += 1e-6F * static_cast<float>(++runs % 1009);
    });
  }
  if (kernel == "matmul" && fault_ == "rounded_matmuls") {
    after([](const Bound& call) {
      for (float& c : floats_of(call.arguments[2]))  // to the 10 bits of TF32
        c = std::bit_cast<float>(std::bit_cast<std::uint32_t>(c) & ~std::uint32_t{0x1FFF});
    });
  }
}

}  // namespace

MULLIGAN_EXPORT_BACKEND(Planted, planted);
