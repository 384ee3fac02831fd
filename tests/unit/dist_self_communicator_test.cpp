// The communicator of a world of one: data stay as they are, and calls that no communicator could
// serve are refused.
#include <gtest/gtest.h>

#include <stdexcept>

#include "framework/dist/communicator.h"
#include "tests/support/plugins.h"

namespace mulligan {
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
};

TEST_F(SelfCommunicatorTest, ReductionsLeaveTheTensorAsItIs) {
  EXPECT_EQ(communicator_->rank(), 0);
  EXPECT_EQ(communicator_->world_size(), 1);
  communicator_->all_reduce(store_, "values", Reduction::average);
  communicator_->all_reduce(store_, "values", Reduction::sum);
  communicator_->broadcast(store_, "values", 0);
  communicator_->reduce_scatter(store_, "values", "values", Reduction::average);
  communicator_->all_gather(store_, "values", "values");
  communicator_->barrier(store_);
  EXPECT_EQ(store_.download_as<float>("values"), values_);
}

TEST_F(SelfCommunicatorTest, TheOnlySliceIsTheWholeBank) {
  store_.create("slice", TensorType(MLG_F32, {4}));
  communicator_->reduce_scatter(store_, "values", "slice", Reduction::average);
  EXPECT_EQ(store_.download_as<float>("slice"), values_);
  store_.zero("values");
  communicator_->all_gather(store_, "slice", "values");
  EXPECT_EQ(store_.download_as<float>("values"), values_);
}

TEST_F(SelfCommunicatorTest, HostValuesStay) {
  std::vector<double> sums{1.5, 2.5};
  communicator_->sum(sums);
  EXPECT_EQ(sums, (std::vector<double>{1.5, 2.5}));
  EXPECT_EQ(communicator_->agree(0.25), 0.25);
}

TEST_F(SelfCommunicatorTest, CallsThatCannotWorkAreRefused) {
  store_.create("numbers", TensorType(MLG_I32, {4}));
  EXPECT_THROW(communicator_->all_reduce(store_, "numbers", Reduction::sum), std::logic_error);
  EXPECT_THROW(communicator_->all_reduce(store_, "unknown", Reduction::sum), std::logic_error);
  EXPECT_THROW(communicator_->broadcast(store_, "values", 1), std::logic_error);
}

}  // namespace
}  // namespace mulligan
