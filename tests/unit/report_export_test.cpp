// What other tools read: TensorBoard's record framing and messages, and CSV.
#include <gtest/gtest.h>

#include <string>

#include "framework/report/metrics_reader.h"
#include "framework/report/tensorboard.h"

namespace mulligan::report_export_test {
namespace {

std::string bytes(std::initializer_list<int> values) {
  std::string text;
  for (const int value : values) text += static_cast<char>(value);
  return text;
}

// RFC 3720, B.4, and the check value of the catalogue of parametrised CRC algorithms.
TEST(Crc32c, HasThePublishedValues) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  std::string rising;
  for (int i = 0; i < 32; ++i) rising += static_cast<char>(i);
  EXPECT_EQ(crc32c(rising), 0x46dd794eu);
  EXPECT_EQ(crc32c(""), 0u);
}

TEST(TensorBoard, ARecordIsLengthChecksumDataChecksum) {
  // masked: (0xe3069283 >> 15 | 0xe3069283 << 17) + 0xa282ead8, modulo 2^32.
  const std::string record = tensorboard_record("123456789");
  ASSERT_EQ(record.size(), 8u + 4 + 9 + 4);
  EXPECT_EQ(record.substr(0, 8), bytes({9, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(record.substr(12, 9), "123456789");
  EXPECT_EQ(masked_crc32c("123456789"), 0xc78ab0e5u);
  EXPECT_EQ(record.substr(21), bytes({0xe5, 0xb0, 0x8a, 0xc7}));
}

TEST(TensorBoard, AnEventHoldsTheValuesOfItsStep) {
  const std::string file = tensorboard_events({{300, 1.0, "a", 0.5}, {300, 1.0, "b", -2.0}}, 0.0);
  const std::size_t head = 8 + 4 + (9 + 2 + 2 + 13) + 4;  // wall time, step, "brain.Event:2"
  ASSERT_GT(file.size(), head + 12);
  EXPECT_NE(file.substr(0, head).find("brain.Event:2"), std::string::npos);
  const std::string event = file.substr(head + 12, file.size() - head - 16);
  EXPECT_EQ(event, bytes({0x09, 0,    0,    0, 0,   0,    0, 0xf0, 0x3f,           // 1: wall_time 1.0
                          0x10, 0xac, 0x02,                                        // 2: step 300
                          0x2a, 20,                                                // 5: summary
                          0x0a, 8,    0x0a, 1, 'a', 0x15, 0, 0,    0,    0x3f,     // value: tag, 0.5
                          0x0a, 8,    0x0a, 1, 'b', 0x15, 0, 0,    0,    0xc0}));  // value: tag, -2
}

TEST(Scalars, AreTheFiniteNumbersOfTheHistory) {
  MetricsHistory history;
  StepRecord step;
  step.step = 5;
  step.loss_nats = 3.5;
  step.window_loss_nats = std::numeric_limits<double>::quiet_NaN();
  step.elapsed_seconds = 2;
  step.lr = {{"matrices", 0.02}};
  history.steps = {step};
  history.validations = {{5, 3.0, 1.25, 100, 300, 1.0}, {9, 2.5, 0, 100, 0, 1.0}};
  const std::vector<Scalar> scalars = scalars_of(history);
  const auto value = [&](std::int64_t at, const std::string& name) -> double {
    for (const Scalar& s : scalars) {
      if (s.step == at && s.name == name) return s.value;
    }
    return -1;
  };
  EXPECT_EQ(value(5, "loss_nats"), 3.5);
  EXPECT_EQ(value(5, "lr/matrices"), 0.02);
  EXPECT_EQ(value(5, "val_bpb"), 1.25);
  EXPECT_EQ(value(9, "val_loss_nats"), 2.5);
  EXPECT_EQ(value(9, "val_bpb"), -1);  // no bytes were counted
  EXPECT_EQ(value(5, "window_loss_nats"), -1);
  EXPECT_EQ(scalars.back().elapsed_seconds, 2);
}

TEST(Scalars, CsvHasARowPerStepAndQuotesNames) {
  EXPECT_EQ(csv_table({{1, 0.5, "loss_nats", 4.25}, {2, 1, "loss_nats", 4}, {2, 1, "lr/a,\"b\"", 0.1}}),
            "step,elapsed_seconds,loss_nats,\"lr/a,\"\"b\"\"\"\r\n1,0.5,4.25,\r\n2,1,4,0.1\r\n");
}

}  // namespace
}  // namespace mulligan::report_export_test
