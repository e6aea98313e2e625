// SPDX-License-Identifier: Apache-2.0
// The agents' join file in a ConfigMap of an API server of the test.
#include "controlplane/server/join_file_publisher.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/support/apiserver/fake_api_server.h"
#include "tests/support/store/scratch_directory.h"

namespace rocegw::server {
namespace {

using rocegw::testing::FakeApiServer;
using rocegw::testing::ScratchDirectory;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr char kPath[] = "/api/v1/namespaces/rocegw/configmaps/rocegw-join";

class JoinFilePublisherTest : public ::testing::Test {
 protected:
  // Looks until the API server has been asked `calls` times in all.
  void LookUntil(size_t calls) {
    const auto deadline = std::chrono::steady_clock::now() + seconds(20);
    while (fake_.calls().size() < calls && std::chrono::steady_clock::now() < deadline) {
      publisher_.Look(now_);
      std::this_thread::yield();
    }
    EXPECT_EQ(fake_.calls().size(), calls);
  }
  // Looks for a while, in which the API server must not be asked.
  void LookInVain() {
    const size_t before = fake_.calls().size();
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
    while (std::chrono::steady_clock::now() < end) {
      publisher_.Look(now_);
      std::this_thread::yield();
    }
    EXPECT_EQ(fake_.calls().size(), before);
  }
  std::string File() const {
    const auto object = fake_.Find(kPath);
    return object && object->contains("data") ? (*object)["data"].value("join.yaml", "") : "";
  }

  ScratchDirectory directory_;
  FakeApiServer fake_{directory_.File("")};
  kubeapi::ApiServer api_{fake_.settings()};
  JoinFilePublisher publisher_{api_, "rocegw/rocegw-join", "controllers: [a]\n"};
  JoinFilePublisher::Clock::time_point now_ = JoinFilePublisher::Clock::now();
};

TEST_F(JoinFilePublisherTest, FileIsWrittenIntoTheObject_AndAgainAfterAWhile) {
  fake_.Put(kPath, {{"metadata", {{"name", "rocegw-join"}}}, {"data", {{"other", "kept"}}}});
  LookUntil(1);
  EXPECT_EQ(fake_.calls().front(), std::string("PATCH ") + kPath);
  EXPECT_EQ(File(), "controllers: [a]\n");
  EXPECT_EQ((*fake_.Find(kPath))["data"]["other"], "kept");
  LookInVain();
  fake_.Put(kPath, {{"metadata", {{"name", "rocegw-join"}}}});
  now_ += JoinFilePublisher::kInterval;
  LookUntil(2);
  EXPECT_EQ(File(), "controllers: [a]\n");
}

TEST_F(JoinFilePublisherTest, MissingObject_IsTriedAgain) {
  LookUntil(1);
  LookInVain();
  fake_.Put(kPath, {{"metadata", {{"name", "rocegw-join"}}}});
  now_ += JoinFilePublisher::kRetry;
  LookUntil(2);
  EXPECT_EQ(File(), "controllers: [a]\n");
}

}  // namespace
}  // namespace rocegw::server
