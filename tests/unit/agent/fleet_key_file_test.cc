// SPDX-License-Identifier: Apache-2.0
// The file with the keys of the fleet: taken from a controller, kept when that does not answer or
// answers nonsense.
#include "agent/sync/fleet_key_file.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <mutex>

#include "gateway/disk/durable_file.h"
#include "rocegw/fleet/v1/node.grpc.pb.h"
#include "tests/support/store/scratch_directory.h"

namespace rocegw::agent {
namespace {

using fleet::v1::GetFleetKeysResponse;

GetFleetKeysResponse AnswerOf(const std::vector<std::string>& keys) {
  GetFleetKeysResponse answer;
  for (const std::string& key : keys) answer.add_keys(key);
  answer.mutable_refresh_after()->set_seconds(0);
  return answer;
}

class Controller final : public fleet::v1::NodeService::Service {
 public:
  grpc::Status GetFleetKeys(grpc::ServerContext*, const fleet::v1::GetFleetKeysRequest* request,
                            GetFleetKeysResponse* answer) override {
    const std::scoped_lock lock(mutex_);
    ++asked;
    if (request->gateway() != "gateways/a") return {grpc::StatusCode::PERMISSION_DENIED, "who?"};
    *answer = answer_;
    return grpc::Status::OK;
  }
  void Say(GetFleetKeysResponse answer) {
    const std::scoped_lock lock(mutex_);
    answer_ = std::move(answer);
  }
  std::atomic<int> asked{0};

 private:
  std::mutex mutex_;
  GetFleetKeysResponse answer_;
};

class FleetKeyFileTest : public ::testing::Test {
 protected:
  FleetKeyFileTest() {
    EXPECT_TRUE(loop_.Open().ok());
    grpc::ServerBuilder builder;
    builder.AddListeningPort(socket_, grpc::experimental::LocalServerCredentials(UDS));
    builder.RegisterService(&controller_);
    server_ = builder.BuildAndStart();
  }
  ~FleetKeyFileTest() override {
    server_->Shutdown(std::chrono::system_clock::now());
    channel_.reset();
  }
  std::string Read() {
    auto text = ReadSmallFile(path_);
    return text.ok() ? *text : "";
  }
  template <typename Condition>
  bool RunUntil(Condition condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!condition() && std::chrono::steady_clock::now() < end) loop_.RunOnce(Milliseconds(20));
    return condition();
  }

  rocegw::testing::ScratchDirectory directory_;
  const std::string path_ = directory_.File("fleet.key");
  const std::string socket_ = "unix:" + directory_.File("s");
  Controller controller_;
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_ =
      grpc::CreateChannel(socket_, grpc::experimental::LocalCredentials(UDS));
  ControlLoop loop_;
};

TEST_F(FleetKeyFileTest, AnswersReplaceTheFile_AndNonsenseDoesNot) {
  controller_.Say(AnswerOf({std::string(16, '\xA1'), std::string(16, '\x02')}));
  std::atomic<int64_t> taken{0};
  FleetKeyFile file(
      loop_, path_, "gateways/a", [this] { return channel_; }, [&](int64_t at) { taken = at; });
  std::string ones;
  std::string twos;
  for (int i = 0; i < 16; ++i) {
    ones += "a1";
    twos += "02";
  }
  ASSERT_TRUE(RunUntil([&] { return taken != 0; }));
  EXPECT_TRUE(Read().ends_with("\n" + ones + "\n" + twos + "\n")) << Read();
  struct stat info {};
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);

  controller_.Say(AnswerOf({std::string(16, '\x02')}));
  EXPECT_TRUE(RunUntil([&] { return Read().ends_with(".\n" + twos + "\n"); })) << Read();

  const std::string kept = Read();
  controller_.Say(AnswerOf({}));
  const int before = controller_.asked;
  ASSERT_TRUE(RunUntil([&] { return controller_.asked > before; }));
  for (int i = 0; i < 20; ++i) loop_.RunOnce(Milliseconds(20));
  EXPECT_EQ(Read(), kept) << "the gateway would lose its keys";
}

TEST(FleetKeyFileText, AnswersWithoutUsableKeys_AreRefused) {
  const std::string key(16, 'k');
  EXPECT_TRUE(FleetKeyFile::TextOf(AnswerOf({key, key, key})).ok());
  EXPECT_FALSE(FleetKeyFile::TextOf(AnswerOf({})).ok());
  EXPECT_FALSE(FleetKeyFile::TextOf(AnswerOf({key, key, key, key})).ok());
  EXPECT_FALSE(FleetKeyFile::TextOf(AnswerOf({key, key.substr(1)})).ok());
}

}  // namespace
}  // namespace rocegw::agent
