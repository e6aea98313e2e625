// SPDX-License-Identifier: Apache-2.0
// Revocations as seen by callers and listeners. No test waits for a time, only for the store's
// watch.
#include "controlplane/identity/revocations.h"

#include <gtest/gtest.h>

#include <future>

#include "controlplane/identity/enrollment.h"
#include "controlplane/store/local/memory_store.h"

namespace rocegw::identity {
namespace {

class RevocationsTest : public ::testing::Test {
 protected:
  void Commit(const Step& step) {
    ASSERT_TRUE(store_->Txn({.compares = step.compares, .then = step.operations, .otherwise = {}})
                    .value()
                    .succeeded);
  }
  void Revoke(const std::string& path, TimePoint at) {
    Commit(PlanRevoke(path, *store_->Get(CertificateKey(path)), at, Rejoin::kAllowed));
  }
  void Await(const std::string& path, const std::string& next) {
    controlplane::v1::CertificateRecord record;
    record.set_next_serial(next);
    Commit(
        {.compares = {},
         .operations = {store::Operation::Put(CertificateKey(path), record.SerializeAsString())}});
  }
  controlplane::v1::CertificateRecord Record(const std::string& path) {
    controlplane::v1::CertificateRecord record;
    record.ParseFromString((*store_->Get(CertificateKey(path)))->value);
    return record;
  }

  const TimePoint now_ = Now();
  const std::string first_ = NewSerial(now_);
  const std::string second_ = NewSerial(now_ + std::chrono::seconds(1));
  std::unique_ptr<store::MemoryStore> store_ = store::NewMemoryStore();
};

TEST_F(RevocationsTest, WhatWasRevokedBeforeTheStart_IsKnown) {
  Revoke("node/a", now_ + std::chrono::milliseconds(1));
  const auto revocations = std::move(*Revocations::Start(*store_));
  EXPECT_FALSE(revocations->IsGood({"node/a", first_}));
  EXPECT_FALSE(revocations->IsGood({"node/a", ""})) << "no serial of ours";
  EXPECT_TRUE(revocations->IsGood({"node/a", second_}));
  EXPECT_TRUE(revocations->IsGood({"node/b", first_}));
  EXPECT_TRUE(revocations->IsGood({"user/a", first_})) << "a user is another";
}

TEST_F(RevocationsTest, Listener_IsCalledOnceWhenItIsRevoked_AndOthersAreNot) {
  const auto revocations = std::move(*Revocations::Start(*store_));
  std::promise<void> called;
  std::atomic<int> calls{0};
  const auto concerned = revocations->Listen({"node/a", first_}, [&] {
    if (++calls == 1) called.set_value();
  });
  const auto newer = revocations->Listen({"node/a", second_}, [&] { calls += 100; });
  const auto other = revocations->Listen({"node/b", first_}, [&] { calls += 100; });
  Revoke("node/a", now_ + std::chrono::milliseconds(1));
  called.get_future().wait();
  EXPECT_FALSE(revocations->IsGood({"node/a", first_}));
  // A second change, whose effect proves that the first one was reported to all.
  std::promise<void> end;
  const auto last = revocations->Listen({"node/c", first_}, [&] { end.set_value(); });
  Revoke("node/c", now_ + std::chrono::milliseconds(1));
  end.get_future().wait();
  EXPECT_EQ(calls, 1);
}

TEST_F(RevocationsTest, Listener_OfARevokedCertificate_IsCalledAtOnce) {
  Revoke("node/a", now_ + std::chrono::milliseconds(1));
  const auto revocations = std::move(*Revocations::Start(*store_));
  bool called = false;
  const auto listening = revocations->Listen({"node/a", first_}, [&] { called = true; });
  EXPECT_TRUE(called);
}

TEST_F(RevocationsTest, Listening_MayEndWithinItsCall_AndIsNotCalledAfterwards) {
  const auto revocations = std::move(*Revocations::Start(*store_));
  std::promise<void> called;
  std::unique_ptr<Revocations::Listening> listening;
  listening = revocations->Listen({"node/a", first_}, [&] {
    listening.reset();
    called.set_value();
  });
  std::atomic<bool> wrong{false};
  revocations->Listen({"node/a", first_}, [&] { wrong = true; }).reset();
  Revoke("node/a", now_ + std::chrono::milliseconds(1));
  called.get_future().wait();
  EXPECT_EQ(listening, nullptr);
  EXPECT_FALSE(wrong);
}

TEST_F(RevocationsTest, RenewedCertificate_SeenForTheFirstTime_EndsThoseBefore) {
  Await("node/a", second_);
  auto revocations = std::move(*Revocations::Start(*store_));
  std::promise<void> ended;
  const auto old = revocations->Listen({"node/a", first_}, [&] { ended.set_value(); });
  EXPECT_TRUE(revocations->IsGood({"node/a", first_}));
  EXPECT_EQ(Record("node/a").next_serial(), second_) << "the old one changes nothing";
  EXPECT_TRUE(revocations->IsGood({"node/a", second_}));
  ended.get_future().wait();
  EXPECT_FALSE(revocations->IsGood({"node/a", first_}));
  EXPECT_TRUE(revocations->IsGood({"node/a", second_}));
  EXPECT_EQ(Record("node/a").least_serial(), second_);
  revocations.reset();
}

}  // namespace
}  // namespace rocegw::identity
