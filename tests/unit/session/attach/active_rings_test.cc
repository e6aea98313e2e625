// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/attach/active_rings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

namespace rocegw::session {
namespace {

class Program final : public RingRequests {
 public:
  bool HasRequest() const override { return requests != 0; }
  bool MayRead() const override { return requests != 0 && !held_up; }
  void Read() override {
    --requests;
    ++reads;
    if (on_read) on_read();
  }
  void SetAwake(bool now) override {
    awake = now;
    if (!now) requests += std::exchange(puts_while_falling_asleep, 0);
  }

  int requests = 0;
  int reads = 0;
  bool held_up = false;
  bool awake = false;
  int puts_while_falling_asleep = 0;
  std::function<void()> on_read;
};

class Active : public ::testing::Test {
 protected:
  // Lets the thread sleep and wake up.
  void Sleep(uint32_t times = 1) {
    for (uint32_t i = 0; i < times; ++i) {
      rings_.SetAwake(false);
      rings_.SetAwake(true);
    }
  }

  ActiveRings rings_;
  Program one_, other_;
};

TEST_F(Active, Noted_IsLookedAt) {
  rings_.Note(one_);
  EXPECT_TRUE(one_.awake);
  EXPECT_FALSE(rings_.HasWork());
  one_.requests = 1;
  EXPECT_TRUE(rings_.HasWork());
  rings_.Work();
  EXPECT_EQ(one_.reads, 1);
}

TEST_F(Active, ThreadSleeps_ProgramsMustWakeIt) {
  rings_.Note(one_);
  rings_.SetAwake(false);
  EXPECT_FALSE(one_.awake);
  rings_.SetAwake(true);
  EXPECT_TRUE(one_.awake);
}

TEST_F(Active, RequestOfAProgramThatMayNotBeRead_IsNoWork) {
  rings_.Note(one_);
  one_.requests = 1;
  one_.held_up = true;
  EXPECT_FALSE(rings_.HasWork());
  rings_.Work();
  EXPECT_EQ(one_.reads, 0);
}

TEST_F(Active, Work_ReadsEachProgramOnce) {
  rings_.Note(one_);
  rings_.Note(other_);
  one_.requests = 100;
  other_.requests = 1;
  rings_.Work();
  EXPECT_EQ(one_.reads, 1);
  EXPECT_EQ(other_.reads, 1);
}

TEST_F(Active, IdleProgram_IsForgotten) {
  rings_.Note(one_);
  Sleep(ActiveRings::kIdleSleeps);
  rings_.Note(one_);
  Sleep(ActiveRings::kIdleSleeps);
  EXPECT_EQ(rings_.size(), 1u);
  Sleep();
  EXPECT_EQ(rings_.size(), 0u);
  EXPECT_FALSE(one_.awake);
}

TEST_F(Active, RequestThatComesWhileAProgramIsForgotten_IsFound) {
  rings_.Note(one_);
  Sleep(ActiveRings::kIdleSleeps);
  rings_.SetAwake(false);
  one_.puts_while_falling_asleep = 1;
  rings_.SetAwake(true);
  EXPECT_TRUE(rings_.HasWork());
  EXPECT_TRUE(one_.awake);
  rings_.Work();
  EXPECT_EQ(one_.reads, 1);
}

TEST_F(Active, ProgramBeyondTheLimit_IsServedUntilItsRequestsAreRead) {
  std::vector<std::unique_ptr<Program>> all;
  for (size_t i = 0; i < ActiveRings::kMost; ++i) {
    all.push_back(std::make_unique<Program>());
    rings_.Note(*all.back());
  }
  one_.requests = 2;
  rings_.Note(one_);
  EXPECT_TRUE(one_.awake);
  rings_.Work();
  EXPECT_EQ(one_.reads, 1);
  EXPECT_TRUE(one_.awake);
  rings_.Work();
  EXPECT_EQ(one_.reads, 2);
  EXPECT_FALSE(one_.awake) << "it must wake the thread again";
  EXPECT_EQ(rings_.size(), ActiveRings::kMost);
  // A program that was idle while the thread slept makes place.
  Sleep();
  for (size_t i = 1; i < all.size(); ++i) rings_.Note(*all[i]);
  rings_.Note(one_);
  rings_.Work();
  EXPECT_TRUE(one_.awake);
  EXPECT_FALSE(all[0]->awake);
  EXPECT_EQ(rings_.size(), ActiveRings::kMost);
}

TEST_F(Active, ProgramThatEndsInItsRequest_IsNotTouchedAgain) {
  rings_.Note(one_);
  rings_.Note(other_);
  one_.requests = other_.requests = 1;
  one_.on_read = [&] {
    rings_.Remove(one_);
    rings_.Remove(other_);
  };
  rings_.Work();
  EXPECT_EQ(one_.reads, 1);
  EXPECT_EQ(other_.reads, 0);
  EXPECT_EQ(rings_.size(), 0u);
}

}  // namespace
}  // namespace rocegw::session
