#include "plugins/backends/cpu/math/onednn_gemm.h"

#include <omp.h>
#include <sys/mman.h>
#include <dnnl.hpp>

#include <atomic>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "plugins/backends/cpu/math/packed_gemm.h"

namespace mulligan::cpu {
namespace {

dnnl::engine& engine() {
  static dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

// oneDNN fixes a primitive's division of work when it is made. Made for one thread, a primitive's sums do not
// depend on the number of threads; the tiles of a matmul are what runs in parallel.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before_); }

 private:
  int before_;
};

// oneDNN 2.7's code generator does not look whether the memory for its code was given: it writes to
// address 0. So this asks for as much before, and gives it back. The generators of one matmul take less
// than this together.
constexpr std::size_t kCodeBytes = std::size_t{64} << 20;

bool code_fits() {
  void* memory = mmap(nullptr, kCodeBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  munmap(memory, kCodeBytes);
  return true;
}

// What oneDNN makes of a shape; make_gemm() keeps it. Programs are built anew of the same shapes, and to
// describe a small matmul to oneDNN takes longer than to compute it.
struct Made {
  dnnl::matmul::primitive_desc description;
  dnnl::matmul primitive{description};
  std::atomic<bool> ran{false};
};

class OnednnGemm final : public Gemm {
 public:
  OnednnGemm(std::shared_ptr<Made> made, bool bf16, int slots)
      : made_(std::move(made)),
        scratch_bytes_(made_->description.scratchpad_desc().get_size()),
        fast_(std::string(made_->description.impl_info_str()).find("ref") == std::string::npos &&
              (!bf16 || bf16_matmuls_pay())) {
    const auto& description = made_->description;
    for (int i = 0; i < slots; ++i) {
      slots_.push_back({dnnl::stream(engine()), bare(description.src_desc()),
                        bare(description.weights_desc()), bare(description.dst_desc()),
                        bare(description.scratchpad_desc())});
    }
  }

  std::size_t scratch_bytes() const override { return scratch_bytes_; }
  bool fast() const override { return fast_; }

  bool run(int slot, const void* a, const void* b, void* c, void* scratch) noexcept override {
    // The C interface: the C++ one throws, and copies an unordered_map at every call.
    // Some code is generated when a matmul runs for the first time.
    if (!made_->ran.load(std::memory_order_relaxed)) {
      if (!code_fits()) return false;
      made_->ran.store(true, std::memory_order_relaxed);
    }
    Slot& s = slots_[static_cast<std::size_t>(slot)];
    const bool bound = dnnl_memory_set_data_handle(s.a.get(), const_cast<void*>(a)) == dnnl_success &&
                       dnnl_memory_set_data_handle(s.b.get(), const_cast<void*>(b)) == dnnl_success &&
                       dnnl_memory_set_data_handle(s.c.get(), c) == dnnl_success &&
                       dnnl_memory_set_data_handle(s.scratch.get(), scratch) == dnnl_success;
    const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_SRC, s.a.get()},
                                         {DNNL_ARG_WEIGHTS, s.b.get()},
                                         {DNNL_ARG_DST, s.c.get()},
                                         {DNNL_ARG_SCRATCHPAD, s.scratch.get()}};
    return bound &&
           dnnl_primitive_execute(made_->primitive.get(), s.stream.get(), 4, arguments) == dnnl_success;
  }

 private:
  struct Slot {
    dnnl::stream stream;
    dnnl::memory a, b, c, scratch;
  };
  static dnnl::memory bare(const dnnl::memory::desc& description) {
    return dnnl::memory(description, engine(), DNNL_MEMORY_NONE);
  }

  std::shared_ptr<Made> made_;
  std::size_t scratch_bytes_;
  bool fast_;
  std::vector<Slot> slots_;
};

dnnl::primitive_attr attributes(const GemmShape& shape) {
  dnnl::post_ops after;
  dnnl::primitive_attr result;
#if DNNL_VERSION_MAJOR >= 3
  if (shape.alpha != 1.0f) after.append_eltwise(dnnl::algorithm::eltwise_linear, shape.alpha, 0.0f);
#else
  // 2.x has only a reference loop for eltwise and sum together where c is a tile of a wider matrix.
  if (shape.alpha != 1.0f) result.set_output_scales(0, {shape.alpha});
#endif
  if (shape.beta != 0.0f) after.append_sum(shape.beta);
  result.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  result.set_post_ops(after);
  return result;
}

}  // namespace

namespace {

#if defined(__x86_64__)
// Values of cpu_isa are sets of bits: those of AVX-512 have AVX2's and more of their own.
bool may_use(dnnl::cpu_isa isa) {
  const auto bits = static_cast<unsigned>(isa);
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & bits) == bits;
}
#endif

}  // namespace

// The matrix unit (AMX) pays many times over, and AMD's dot products reach twice the f32 rate (Zen 5).
// Intel's dot products do no more multiply-adds a cycle than its two f32 units, and their operands must be
// interleaved first: 0.6 to 0.7 of the f32 matmuls' speed. Without any, oneDNN imitates
// them: a quarter (docs/performance.md).
bool bf16_matmuls_pay() {
#if defined(__x86_64__)
  using dnnl::cpu_isa;
  return may_use(cpu_isa::avx512_core_amx) ||
         (may_use(cpu_isa::avx512_core_bf16) && !__builtin_cpu_is("intel"));
#else
  return true;
#endif
}

bool takes_packed_operands([[maybe_unused]] const GemmShape& shape) {
#if defined(__x86_64__) && defined(__AVX2__) && defined(__FMA__)
  using dnnl::cpu_isa;
  if (!packs(shape) || !may_use(cpu_isa::avx2)) return false;
  // oneDNN has no such matmul, or a slow one.
  if (shape.ab_bf16 && !bf16_matmuls_pay()) return true;
  if (!may_use(cpu_isa::avx512_core)) return true;
#if defined(__AVX512F__)
  // oneDNN's are as fast, but compute elements that are not needed. The matrix unit is faster still.
  return shape.diagonal < shape.n && !(shape.ab_bf16 && may_use(cpu_isa::avx512_core_amx));
#endif
#endif
  return false;
}

std::unique_ptr<Gemm> make_gemm(const GemmShape& shape, int slots) {
  if (takes_packed_operands(shape)) return make_packed_gemm(shape);
  static std::mutex mutex;
  static std::map<GemmShape, std::shared_ptr<Made>> kept;
  const std::lock_guard lock(mutex);
  if (kept.size() > 1024) kept.clear();  // oneDNN itself keeps as many
  std::shared_ptr<Made>& made = kept[shape];
  if (made) return std::make_unique<OnednnGemm>(made, shape.ab_bf16, slots);
  using dnnl::memory;
  const auto type = [](bool bf16) { return bf16 ? memory::data_type::bf16 : memory::data_type::f32; };
  const memory::desc a({shape.m, shape.k}, type(shape.ab_bf16), memory::dims{shape.a_row, shape.a_column});
  const memory::desc b({shape.k, shape.n}, type(shape.ab_bf16), memory::dims{shape.b_row, shape.b_column});
  const memory::desc c({shape.m, shape.n}, type(shape.c_bf16), memory::dims{shape.c_row, 1});
  const OneThread one_thread;
  if (!code_fits()) {
    throw std::runtime_error(
        "oneDNN has no memory left for the code of a matmul; use a smaller batch or model, or free "
        "memory on this machine");
  }
#if DNNL_VERSION_MAJOR >= 3
  const dnnl::matmul::primitive_desc description(engine(), a, b, c, attributes(shape), /*allow_empty=*/true);
#else
  const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(a, b, c), attributes(shape), engine(),
                                                 /*allow_empty=*/true);
#endif
  if (!description) return nullptr;
  made.reset(new Made{description});
  return std::make_unique<OnednnGemm>(made, shape.ab_bf16, slots);
}

}  // namespace mulligan::cpu
