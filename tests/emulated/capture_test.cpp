// Captured graphs: what they replay is what an eager run computes, to the bit, also when the segments of
// attention ask for another plan between two runs; and calls that break a capture on a GPU are refused.
#include <gtest/gtest.h>

#include "plugins/backends/cuda_emulated/emulated_device.h"
#include "tests/kernels/backend_fixture.h"
#include "tests/kernels/operator_case.h"
#include "tests/support/sentence.h"

namespace mulligan::kernel_test::capture_test {
namespace {

void check(mlg_error error) {
  if (error) throw std::runtime_error(error);
}

// A list of calls over memory of its own: attention forward and backward, a matmul, and an update of v. So every run starts
// from what the one before left.
class List {
 public:
  static constexpr std::int64_t kTokens = 192, kHeads = 2, kKvHeads = 1, kWidth = 16, kEntries = 13;

  explicit List(bool graphs)
      : backend_({plugin_file("cuda"),
                  "",
                  {{"device", "\"emulated\""},
                   {"attention", "\"library\""},
                   {"graphs", graphs ? "true" : "false"}},
                  false}) {
    const std::vector<std::int64_t> wide{kTokens, kHeads, kWidth}, narrow{kTokens, kKvHeads, kWidth};
    for (const char* name : {"q", "o", "do", "dq"}) make(name, MLG_BF16, wide);
    for (const char* name : {"k", "v", "dk", "dv"}) make(name, MLG_BF16, narrow);
    make("lse", MLG_F32, {kTokens, kHeads});
    make("cu", MLG_I32, {kEntries});
    make("v2", MLG_BF16, {kTokens, kWidth}, "v");
    make("product", MLG_F32, {kWidth, kWidth});
    const double scale = 0.25;
    add("attention_fwd", {"q", "k", "v", "cu", "o", "lse"}, {{"softmax_scale", scale}});
    add("attention_bwd", {"q", "k", "v", "cu", "o", "lse", "do", "dq", "dk", "dv"},
        {{"softmax_scale", scale}, {"accumulate_dq", 0}, {"accumulate_dk", 0}, {"accumulate_dv", 1}});
    add("matmul", {"v2", "v2", "product"},
        {{"transpose_a", 1}, {"transpose_b", 0}, {"alpha", 0.5}, {"beta", 1}});
    add("axpby", {"dv", "", "v"}, {{"alpha", 0.125}, {"beta", 0}, {"accumulate_y", 1}});
    bind();
  }
  ~List() {
    for (void* call : calls_) table().release(backend_.instance(), call);
    for (auto& [name, buffer] : buffers_) {
      if (buffer.owned) table().free(backend_.instance(), buffer.address);
    }
  }
  List(const List&) = delete;
  List& operator=(const List&) = delete;

  void upload_segments(std::vector<std::int32_t> cu) {
    cu.resize(kEntries, static_cast<std::int32_t>(kTokens));
    check(table().upload(backend_.instance(), buffers_.at("cu").address, cu.data(), cu.size() * 4));
  }
  void run() {
    check(table().run(backend_.instance(), calls_.data(), static_cast<std::uint32_t>(calls_.size())));
  }
  void bind() {
    for (std::size_t i = 0; i < calls_.size(); ++i)
      check(table().bind(backend_.instance(), calls_[i], addresses_[i].data(), workspaces_[i]));
  }
  std::map<std::string, std::vector<std::byte>> contents() const {
    std::map<std::string, std::vector<std::byte>> all;
    for (const auto& [name, buffer] : buffers_) {
      std::vector<std::byte> bytes(buffer.bytes);
      check(table().download(backend_.instance(), bytes.data(), buffer.address, bytes.size()));
      all[name] = std::move(bytes);
    }
    return all;
  }

 private:
  struct Buffer {
    void* address;
    std::size_t bytes;
    mlg_tensor type;
    bool owned;
  };
  const mlg_backend_table& table() const { return backend_.table(); }

  // With random contents, or those of `same`, whose memory it is then.
  void make(const std::string& name, mlg_dtype dtype, const std::vector<std::int64_t>& shape,
            const std::string& same = "") {
    Buffer buffer{nullptr, element_count(shape) * bytes_per_element(dtype), {}, same.empty()};
    buffer.type = {nullptr, dtype, static_cast<std::int32_t>(shape.size()), {1, 1, 1, 1}};
    std::copy(shape.begin(), shape.end(), buffer.type.shape);
    if (!buffer.owned) {
      buffer.address = buffers_.at(same).address;
    } else {
      check(table().allocate(backend_.instance(), buffer.bytes, &buffer.address));
      if (dtype == MLG_BF16)
        check(table().upload(backend_.instance(), buffer.address, encode(draw(dtype, shape, random_)).data(),
                             buffer.bytes));
    }
    buffers_.emplace(name, buffer);
  }
  void add(const char* kernel, const std::vector<std::string>& names, std::vector<mlg_attribute> attributes) {
    std::vector<mlg_tensor> types;
    std::vector<void*> addresses;
    for (const std::string& name : names) {
      types.push_back(name.empty() ? mlg_tensor{nullptr, MLG_ABSENT, 0, {1, 1, 1, 1}}
                                   : buffers_.at(name).type);
      addresses.push_back(name.empty() ? nullptr : buffers_.at(name).address);
    }
    const mlg_call call{kernel, types.data(), static_cast<std::uint32_t>(types.size()), attributes.data(),
                        static_cast<std::uint32_t>(attributes.size())};
    std::size_t bytes = 0;
    check(table().prepare(backend_.instance(), &call, &calls_.emplace_back(), &bytes));
    const std::string name = "workspace " + std::to_string(calls_.size());
    make(name, MLG_U8, {static_cast<std::int64_t>(bytes)});
    workspaces_.push_back(buffers_.at(name).address);
    addresses_.push_back(addresses);
  }

  BackendFixture backend_;
  Random random_{1};
  std::map<std::string, Buffer> buffers_;
  std::vector<void*> calls_, workspaces_;
  std::vector<std::vector<void*>> addresses_;
};

TEST(Capture, CapturedIsEagerToTheBit) {
  List captured(true), eager(false);
  std::vector<std::int32_t> equal;
  for (int i = 0; i < 13; ++i) equal.push_back(16 * i);
  const std::vector<std::int32_t> few{0, 100, 150}, other{0, 60, 90}, long_one{0, 7}, wrong{0, 90, 60};
  // Eager, captured, replayed with other values, another plan, the first again; the same plans once more
  // after the calls were bound again; a plain batch, boundaries that fit nothing.
  const std::vector<std::vector<std::int32_t>> sequence{few,   few,   other, few,   long_one, long_one, equal,
                                                        equal, equal, other, wrong, wrong,    few};
  int step = 0;
  for (const std::vector<std::int32_t>& cu : sequence) {
    if (++step == 8) {
      captured.bind();
      eager.bind();
    }
    for (List* list : {&captured, &eager}) {
      list->upload_segments(cu);
      list->run();
    }
    ASSERT_TRUE(captured.contents() == eager.contents()) << "after run " << step;
  }
}

// An upload in between is not part of a captured list: what the list reads is what is there when it runs.
TEST(Capture, ReplaysReadNewContents) {
  List list(true);
  std::vector<std::map<std::string, std::vector<std::byte>>> results;
  for (int run = 0; run < 4; ++run) {
    list.upload_segments({0, 40 + 10 * run});
    list.run();
    results.push_back(list.contents());
  }
  for (int run = 1; run < 4; ++run) EXPECT_NE(results[run]["o"], results[run - 1]["o"]) << run;
}

// What waits, allocates, loads or nests while a graph is captured breaks the capture on a GPU.
TEST(Capture, UnsafeCallsAreRefused) {
  using namespace cuda;
  EmulatedDevice device(EmulatedOrder::forward);
  void* memory = device.allocate(64);
  char bytes[64] = {};
  device.to_device(memory, bytes, sizeof bytes);
  device.begin_capture();
  device.fill(memory, 1, 64);
  const std::unique_ptr<CapturedGraph> filled = device.end_capture();
  const auto refused = [&](const char* what, const std::function<void()>& call) {
    device.begin_capture();
    EXPECT_TRUE(contains(said_by(call), what));
    device.abandon_capture();
  };
  std::string reason;
  mlg_cuda_launch launch{};
  refused("waiting for the device", [&] { device.synchronize(); });
  refused("an upload", [&] { device.to_device(memory, bytes, 64); });
  refused("a download", [&] { device.from_device(bytes, memory, 64); });
  refused("memory was asked for", [&] { device.allocate(1); });
  refused("a function was loaded", [&] { device.load({"kernel", "source", &launch, nullptr}); });
  refused("a matmul", [&] { device.gemm({}); });
  refused("attention", [&] { device.attention({}, reason); });
  refused("a second capture", [&] { device.begin_capture(); });
  refused("a graph was launched", [&] { device.launch(*filled); });
  refused("memory was freed", [&] {
    device.free(device.memory().allocate(1));
    device.end_capture();
  });
  // Nothing of an abandoned capture ran, and the device is of use afterwards.
  device.from_device(bytes, memory, 64);
  EXPECT_EQ(bytes[0], 0);
  device.launch(*filled);
  device.from_device(bytes, memory, 64);
  EXPECT_EQ(bytes[63], 1);
  EXPECT_THROW(device.end_capture(), std::runtime_error);
}

}  // namespace
}  // namespace mulligan::kernel_test::capture_test
