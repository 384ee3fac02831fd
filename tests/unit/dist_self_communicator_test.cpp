// The communicator for one rank: transfers leave data unchanged, and invalid calls are refused.
#include <gtest/gtest.h>

#include <stdexcept>

#include "framework/ranks/communicator.h"
#include "tests/support/plugins.h"

namespace mulligan::dist_self_communicator_test {
namespace {

class SelfCommunicatorTest : public testing::Test {
 protected:
  SelfCommunicatorTest()
      : backend_(make_cpu_backend(1)), store_(*backend_), communicator_(make_self_communicator()) {
    store_.create("values", TensorType(MLG_F32, {4}));
    store_.upload("values", values_);
  }

  const std::vector<float> values_{1, -2, 3, 0.5};
  std::unique_ptr<Backend> backend_;
  TensorStore store_;
  std::unique_ptr<Communicator> communicator_;

  void transfer(Collective kind, const char* from, const char* to, std::int64_t count = 4, int root = 0) {
    communicator_->prepare(store_, {{kind, from, to, count, root}})->run();
  }
};

TEST_F(SelfCommunicatorTest, HostValuesStay) {
  std::vector<double> sums{1.5, 2.5};
  communicator_->group().sum(sums);
  EXPECT_EQ(sums, (std::vector<double>{1.5, 2.5}));
  EXPECT_EQ(communicator_->group().agree(0.25), 0.25);
  communicator_->group().put("key", "value");
  EXPECT_EQ(communicator_->group().get("key", 1), "value");
  EXPECT_THROW(communicator_->group().get("another", 1), Error);
}

TEST_F(SelfCommunicatorTest, TransfersThatCannotWorkAreRefused) {
  store_.create("numbers", TensorType(MLG_I32, {4}));
  EXPECT_THROW(transfer(Collective::all_reduce, "numbers", "numbers"), std::logic_error);
  EXPECT_THROW(transfer(Collective::all_reduce, "unknown", "unknown"), std::logic_error);
  EXPECT_THROW(transfer(Collective::broadcast, "values", "values", 4, 1), std::logic_error);
  EXPECT_THROW(transfer(Collective::all_gather, "values", "values", 5), std::logic_error);
  store_.create("sum", TensorType(MLG_F32, {4}));
  EXPECT_THROW(transfer(Collective::reduce, "values", "sum"), std::logic_error) << "only in place";
  EXPECT_THROW(communicator_->prepare(store_, {{Collective::reduce, "values", "values", 3, 0, 2}}),
               std::logic_error);
  EXPECT_THROW(communicator_->prepare(store_, {{Collective::all_gather, "values", "values", 1, 0, 1}}),
               std::logic_error);
  store_.reserve("numbers", 40);
  EXPECT_EQ(store_.reserved_bytes("numbers"), 40);
  transfer(Collective::all_gather, "numbers", "numbers", 10);
}

}  // namespace
}  // namespace mulligan::dist_self_communicator_test
