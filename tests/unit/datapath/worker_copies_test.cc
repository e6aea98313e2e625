// SPDX-License-Identifier: Apache-2.0
// Choice of the copy engine at start: modes, measurement, and engines that cannot be used.
#include "gateway/datapath/worker_copies.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/copy_engine/fake_copy_queue.h"

namespace rocegw::datapath {
namespace {

using testing::FakeCopyOptions;
using testing::FakeCopyQueue;

class OneQueue final : public memory::CopyEngine {
 public:
  explicit OneQueue(FakeCopyOptions options) : queue_(std::move(options)) {}
  size_t queues() const override { return 1; }
  memory::CopyQueue* queue(size_t worker) override { return worker == 0 ? &queue_ : nullptr; }
  const std::string& devices() const override { return name_; }

 private:
  FakeCopyQueue queue_;
  std::string name_ = "fake0";
};

class WorkerCopiesTest : public ::testing::Test {
 protected:
  Status Open(CopyEngineConfig config, FakeCopyOptions fake) {
    return copies_.Open(
        config,
        [this, fake](const std::vector<std::string>& devices,
                     size_t workers) -> StatusOr<std::unique_ptr<memory::CopyEngine>> {
          asked_ = devices;
          EXPECT_EQ(workers, 2u);
          return std::unique_ptr<memory::CopyEngine>(std::make_unique<OneQueue>(fake));
        },
        2, Log());
  }
  session::Log Log() {
    return [this](session::Severity, const std::string& line) { lines_ += line + "\n"; };
  }

  WorkerCopies copies_;
  std::vector<std::string> asked_;
  std::string lines_;
};

TEST_F(WorkerCopiesTest, Off_OpensNothing) {
  EXPECT_TRUE(Open({}, {}).ok());
  EXPECT_EQ(copies_.SettingsOf(0).queue, nullptr);
  EXPECT_EQ(lines_, "");
}

TEST_F(WorkerCopiesTest, Auto_LeavesASlowEngineAlone) {
  // The fake needs many calls of Poll, so that it loses to the processor.
  ASSERT_TRUE(Open({.mode = CopyEngineMode::kAuto}, {.latest = 500}).ok());
  EXPECT_EQ(copies_.SettingsOf(0).queue, nullptr);
  EXPECT_NE(lines_.find("copies nothing by it; 4096 bytes take the engine"), std::string::npos)
      << lines_;
}

TEST_F(WorkerCopiesTest, On_UsesASlowEngineForFullPackets) {
  ASSERT_TRUE(Open({.mode = CopyEngineMode::kOn, .devices = {"a", "b"}}, {.latest = 500}).ok());
  EXPECT_EQ(asked_, (std::vector<std::string>{"a", "b"}));
  EXPECT_NE(copies_.SettingsOf(0).queue, nullptr);
  EXPECT_EQ(copies_.SettingsOf(0).minimum_bytes, 4096u);
  EXPECT_EQ(copies_.SettingsOf(1).queue, nullptr) << "one device, two workers";
  copies_.Close();
  EXPECT_EQ(copies_.SettingsOf(0).queue, nullptr);
}

TEST_F(WorkerCopiesTest, MinimumOfTheConfiguration_Holds) {
  ASSERT_TRUE(Open({.mode = CopyEngineMode::kOn, .minimum_bytes = 600}, {}).ok());
  EXPECT_EQ(copies_.SettingsOf(0).minimum_bytes, 600u);
  EXPECT_NE(lines_.find("worker 0 copies 600 bytes and more by it"), std::string::npos) << lines_;
}

TEST_F(WorkerCopiesTest, EngineWhoseCopiesFail_IsNotUsedInAnyMode) {
  for (const CopyEngineMode mode : {CopyEngineMode::kAuto, CopyEngineMode::kOn}) {
    lines_.clear();
    const Status opened = Open({.mode = mode}, {.fails = 100});
    EXPECT_EQ(opened.ok(), mode == CopyEngineMode::kAuto) << opened.text();
    EXPECT_EQ(copies_.SettingsOf(0).queue, nullptr);
    EXPECT_NE(lines_.find("its copies fail"), std::string::npos) << lines_;
    copies_.Close();
  }
}

TEST_F(WorkerCopiesTest, NoEngine_IsAnErrorInModeOnOnly) {
  const CopyEngineOpener none = [](const std::vector<std::string>&, size_t) {
    return StatusOr<std::unique_ptr<memory::CopyEngine>>(Status(ENODEV, "copy engine: no device"));
  };
  EXPECT_TRUE(copies_.Open({.mode = CopyEngineMode::kAuto}, none, 2, Log()).ok());
  EXPECT_NE(lines_.find("no device; the processor copies"), std::string::npos) << lines_;
  const Status on = copies_.Open({.mode = CopyEngineMode::kOn}, none, 2, Log());
  EXPECT_EQ(on.error(), ENODEV);
  const Status without = copies_.Open({.mode = CopyEngineMode::kOn}, {}, 2, Log());
  EXPECT_EQ(without.error(), ENOTSUP);
}

}  // namespace
}  // namespace rocegw::datapath
