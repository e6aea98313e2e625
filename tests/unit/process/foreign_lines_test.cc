// SPDX-License-Identifier: Apache-2.0
// Lines of gRPC and DPDK go through the logger, at a bounded rate.
#include "gateway/process/log/foreign_lines.h"

#include <grpc/support/log.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>
#include <sstream>
#include <string>

#include "gateway/process/grpc/grpc_log.h"

namespace rocegw::process {
namespace {

// Replaces the default logger by one whose lines the test reads.
class ForeignLinesTest : public ::testing::Test {
 protected:
  ForeignLinesTest() : before_(spdlog::default_logger()) {
    auto logger = std::make_shared<spdlog::logger>(
        "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(text_));
    logger->set_pattern("%l: %v");
    spdlog::set_default_logger(std::move(logger));
  }
  ~ForeignLinesTest() override { spdlog::set_default_logger(before_); }

  std::string text() const { return text_.str(); }
  size_t lines() const {
    const std::string all = text();
    return static_cast<size_t>(std::count(all.begin(), all.end(), '\n'));
  }

 private:
  std::ostringstream text_;
  std::shared_ptr<spdlog::logger> before_;
};

TEST_F(ForeignLinesTest, EachLine_IsLoggedWithTheLibrarysName) {
  ForeignLines lines("DPDK");
  lines.Log(ForeignLevel::kError, "EAL: one\nEAL: two\n");
  EXPECT_EQ(text(), "error: DPDK: EAL: one\nerror: DPDK: EAL: two\n");
}

TEST_F(ForeignLinesTest, ControlCharacters_AreNotLogged) {
  ForeignLines lines("gRPC");
  lines.Log(ForeignLevel::kError, "a\x1B[2Jb");
  EXPECT_EQ(text(), "error: gRPC: a [2Jb\n");
}

TEST_F(ForeignLinesTest, LinesBeyondTheRate_AreLeftOutAndCounted) {
  ForeignLines lines("gRPC");
  const TimePoint begin{1'000'000'000};
  for (int i = 0; i < 50; ++i) lines.LogAt(ForeignLevel::kError, "x", begin);
  EXPECT_EQ(lines.kMostPerPeriod, 20u);
  EXPECT_EQ(this->lines(), 20u);
  lines.LogAt(ForeignLevel::kError, "y", begin + ForeignLines::kPeriod);
  EXPECT_EQ(this->lines(), 22u);
  EXPECT_NE(text().find("warning: gRPC: 30 lines were left out\nerror: gRPC: y\n"),
            std::string::npos);
}

TEST_F(ForeignLinesTest, LibrarysStream_WritesToTheLog) {
  std::FILE* const stream = ForeignStream("DPDK");
  ASSERT_NE(stream, nullptr);
  std::fprintf(stream, "EAL: %d\n", 7);
  std::fflush(stream);
  EXPECT_EQ(text(), "error: DPDK: EAL: 7\n");
}

TEST_F(ForeignLinesTest, GrpcsMessages_AreLogged) {
  RouteGrpcLog();
  gpr_log_verbosity_init();  // as grpc_init does
  gpr_log(GPR_ERROR, "no %s", "handshake");
  gpr_set_log_function(nullptr);
  EXPECT_NE(text().find("error: gRPC: no handshake ("), std::string::npos) << text();
}

}  // namespace
}  // namespace rocegw::process
