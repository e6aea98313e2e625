// SPDX-License-Identifier: Apache-2.0
#include "controlplane/api/driving/answer_queue.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

namespace rocegw::api {
namespace {

constexpr std::chrono::milliseconds kAtOnce(0);
constexpr std::chrono::milliseconds kForever(600'000);

TEST(AnswerQueue, AnswersKeepTheirOrder) {
  AnswerQueue<std::unique_ptr<int>> queue;
  queue.Put(std::make_unique<int>(1));
  queue.Put(std::make_unique<int>(2));
  EXPECT_EQ(**queue.Take(), 1);
  EXPECT_EQ(**queue.Take(), 2);
  EXPECT_FALSE(queue.Take().has_value());
}

TEST(AnswerQueue, ClearDropsAllAnswers) {
  AnswerQueue<int> queue;
  queue.Put(1);
  queue.Put(2);
  queue.Clear();
  EXPECT_FALSE(queue.Take().has_value());
}

TEST(AnswerQueue, PutAndWakeEndAwait) {
  AnswerQueue<int> queue;
  queue.Put(1);
  queue.Await(kForever);
  queue.Wake();
  queue.Await(kForever);
  std::thread putter([&queue] { queue.Put(2); });
  queue.Await(kForever);
  putter.join();
  EXPECT_EQ(queue.Take(), 1);
  EXPECT_EQ(queue.Take(), 2);
}

TEST(AnswerQueue, AnAnswerEndsOneAwaitOnly) {
  AnswerQueue<int> queue;
  queue.Put(1);
  queue.Await(kForever);
  std::thread waker([&queue] {
    queue.Await(kAtOnce);  // returns by its timeout: nothing was put since the last Await
    queue.Wake();
  });
  waker.join();
  queue.Await(kForever);
  EXPECT_EQ(queue.Take(), 1);
}

}  // namespace
}  // namespace rocegw::api
