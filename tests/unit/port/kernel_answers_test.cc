// SPDX-License-Identifier: Apache-2.0
// What is asked of the kernel's tables, and what pools can take from each other.
#include "gateway/port/kernel/kernel_answers.h"

#include <gtest/gtest.h>

#include <set>

namespace rocegw::port::kernel_answers {
namespace {

using Answer = KernelAnswers::Answer;
using Change = KernelAnswers::Change;

constexpr PoolTag kPool{1};
constexpr PoolTag kScanner{2};
constexpr Answer kNeighbour{Reach::kNeighbour, {0x02, 0, 0, 0, 0, 0x07}};

wire::Gid Host(uint32_t number) { return wire::Gid::FromV4(0x0A000000U + number); }
wire::Gid Scanned(uint32_t number) { return wire::Gid::FromV4(0xC0000000U + number); }

class KernelAnswersTest : public ::testing::Test {
 protected:
  Reach Resolve(const wire::Gid& destination, PoolTag pool = kPool) {
    return answers_.Resolve(now_, pool, destination).answer.reach;
  }
  // Answers all questions alike. Returns their number.
  size_t AnswerAll(const Answer& answer) {
    size_t count = 0;
    for (; const auto question = answers_.NextQuestion(); ++count)
      (void)answers_.Set(*question, answer);
    return count;
  }

  TimePoint now_{Seconds(1000).ns};
  KernelAnswers answers_;
};

TEST_F(KernelAnswersTest, NewDestination_IsAskedForOnceAndThenKnown) {
  EXPECT_TRUE(answers_.Resolve(now_, kPool, Host(1)).is_new);
  EXPECT_FALSE(answers_.Resolve(now_, kPool, Host(1)).is_new);
  EXPECT_EQ(answers_.NextQuestion(), Host(1));
  EXPECT_EQ(answers_.NextQuestion(), std::nullopt);
  EXPECT_EQ(answers_.Set(Host(1), kNeighbour), Change::kLearned);
  EXPECT_EQ(answers_.Resolve(now_, kPool, Host(1)).answer, kNeighbour);
}

TEST_F(KernelAnswersTest, UnansweredOnes_AreAskedForAgainForThreeSeconds) {
  (void)Resolve(Host(1));
  EXPECT_EQ(AnswerAll({}), 1U);
  now_ = now_ + Milliseconds(200);
  answers_.AskAgain(now_, false);
  EXPECT_EQ(AnswerAll({}), 1U);
  now_ = now_ + Seconds(4);
  answers_.AskAgain(now_, false);
  EXPECT_EQ(AnswerAll({}), 0U);
  EXPECT_TRUE(answers_.Resolve(now_, kPool, Host(1)).is_new);
}

TEST_F(KernelAnswersTest, KnownOnes_AreAskedForAgainOnlyWithAll) {
  (void)Resolve(Host(1));
  (void)Resolve(Host(2));
  (void)answers_.Set(Host(1), kNeighbour);
  (void)answers_.Set(Host(2), {Reach::kUnreachable, {}});
  answers_.AskAgain(now_, false);
  EXPECT_EQ(answers_.NextQuestion(), std::nullopt);
  answers_.AskAgain(now_, true);
  std::set<wire::Gid> asked;
  while (const auto question = answers_.NextQuestion()) asked.insert(*question);
  EXPECT_EQ(asked, (std::set<wire::Gid>{Host(1), Host(2)}));
}

TEST_F(KernelAnswersTest, ChangedAnswer_IsReportedAndALostNeighbourIsAskedForAnew) {
  (void)Resolve(Host(1));
  EXPECT_EQ(answers_.Set(Host(1), {Reach::kUnreachable, {}}), Change::kLearned);
  EXPECT_EQ(answers_.Set(Host(1), {Reach::kUnreachable, {}}), Change::kNone);
  EXPECT_EQ(answers_.Set(Host(1), kNeighbour), Change::kChanged);
  EXPECT_EQ(answers_.Set(Host(1), {}), Change::kChanged);
  EXPECT_TRUE(answers_.Resolve(now_, kPool, Host(1)).is_new);
}

TEST_F(KernelAnswersTest, ScanBehindARouter_DisplacesTheScannersAnswersOnly) {
  for (uint32_t i = 0; i < 100; ++i) (void)Resolve(Host(i));
  EXPECT_EQ(AnswerAll(kNeighbour), 64U);
  for (uint32_t i = 0; i < 8192; ++i) {
    (void)Resolve(Scanned(i), kScanner);
    EXPECT_EQ(AnswerAll(kNeighbour), 1U);
  }
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(Resolve(Host(i)), Reach::kNeighbour) << i;
  EXPECT_EQ(Resolve(Scanned(8191), kScanner), Reach::kNeighbour);
  EXPECT_EQ(Resolve(Scanned(0), kScanner), Reach::kUnknown);
}

TEST_F(KernelAnswersTest, ScanOfSilentAddresses_AsksTheKernelForFewAndDelaysNoOtherPool) {
  size_t asked = 0;
  for (uint32_t i = 0; i < 8192; ++i) (void)Resolve(Scanned(i), kScanner);
  (void)Resolve(Host(1));
  // Pools take turns.
  const auto first = answers_.NextQuestion();
  const auto second = answers_.NextQuestion();
  EXPECT_TRUE(first == Host(1) || second == Host(1));
  while (answers_.NextQuestion()) ++asked;
  EXPECT_EQ(asked, OpenQuestions::kMostPerPool - 1);
  now_ = now_ + Milliseconds(1100);
  EXPECT_TRUE(answers_.Resolve(now_, kScanner, Scanned(9000)).is_new) << "not for ever";
}

TEST_F(KernelAnswersTest, TwoPoolsWithOneDestination_BothGetTheAnswer) {
  (void)Resolve(Host(1), kPool);
  (void)Resolve(Host(1), kScanner);
  EXPECT_EQ(answers_.Set(Host(1), kNeighbour), Change::kLearned);
  EXPECT_EQ(Resolve(Host(1), kPool), Reach::kNeighbour);
  EXPECT_EQ(Resolve(Host(1), kScanner), Reach::kNeighbour);
  EXPECT_EQ(answers_.NextQuestion(), std::nullopt);
}

}  // namespace
}  // namespace rocegw::port::kernel_answers
