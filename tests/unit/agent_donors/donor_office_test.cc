// SPDX-License-Identifier: Apache-2.0
// The agent between donors and programs of its host, which use files and a socket, and a
// controller.
#include "agent/donors/donor_office.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <future>
#include <mutex>
#include <optional>

#include "gateway/far/fleet/ask_agent.h"
#include "gateway/far/fleet/folder_file.h"
#include "rocegw/fleet/v1/donors.grpc.pb.h"
#include "tests/support/store/scratch_directory.h"

namespace rocegw::agent {
namespace {

class Controller final : public fleet::v1::DonorService::Service {
 public:
  grpc::Status ReportDonors(grpc::ServerContext*, const fleet::v1::ReportDonorsRequest* request,
                            fleet::v1::ReportDonorsResponse* response) override {
    const std::scoped_lock lock(mutex_);
    ++reports;
    last_ = *request;
    for (const auto& donor : request->donors()) {
      fleet::v1::DonorOrder& order = *response->add_donors();
      order.set_name(donor.name());
      order.set_generation(2);
      order.set_draining(true);
      types::v1::DonorQuota& quota = *order.add_quotas();
      quota.set_tenant("tenants/red");
      quota.set_bytes(5);
    }
    return grpc::Status::OK;
  }
  grpc::Status FindHostDonors(grpc::ServerContext*, const fleet::v1::FindHostDonorsRequest* request,
                              fleet::v1::FindHostDonorsResponse* response) override {
    if (request->tenant() != "tenants/red") return {grpc::StatusCode::PERMISSION_DENIED, "no pool"};
    types::v1::FoundDonor& donor = *response->add_donors();
    donor.set_name("gateways/b/donors/d");
    donor.add_addresses("10.0.0.2");
    donor.set_port(7475);
    donor.set_failure_domain(request->pool().empty() ? "zone-b" : "pool-" + request->pool());
    return grpc::Status::OK;
  }
  fleet::v1::ReportDonorsRequest last() {
    const std::scoped_lock lock(mutex_);
    return last_;
  }
  std::atomic<int> reports{0};

 private:
  std::mutex mutex_;
  fleet::v1::ReportDonorsRequest last_;
};

class DonorOfficeTest : public ::testing::Test {
 protected:
  DonorOfficeTest() {
    EXPECT_TRUE(loop_.Open().ok());
    grpc::ServerBuilder builder;
    builder.AddListeningPort(socket_, grpc::experimental::LocalServerCredentials(UDS));
    builder.RegisterService(&controller_);
    server_ = builder.BuildAndStart();
    channel_ = grpc::CreateChannel(socket_, grpc::experimental::LocalCredentials(UDS));
    office_.emplace(
        loop_, folder_, "gateways/a", [this] { return channel_; }, counters_);
  }
  ~DonorOfficeTest() override {
    office_.reset();
    server_->Shutdown(std::chrono::system_clock::now());
    channel_.reset();
  }
  template <typename Condition>
  bool RunUntil(Condition condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!condition() && std::chrono::steady_clock::now() < end) loop_.RunOnce(Milliseconds(20));
    return condition();
  }
  StatusOr<std::vector<far::NamedDonor>> Ask(const far::DonorQuestion& question) {
    auto answer = std::async(std::launch::async, [&] {
      return far::AskAgent(folder_, question, std::chrono::seconds(30));
    });
    EXPECT_TRUE(RunUntil(
        [&] { return answer.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }));
    return answer.get();
  }
  UniqueFd Connect() const {
    const std::string path = folder_ + "/agent.sock";
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return socket;
  }

  rocegw::testing::ScratchDirectory directory_;
  const std::string folder_ = directory_.File("donors");
  const std::string socket_ = "unix:" + directory_.File("s");
  Controller controller_;
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  ControlLoop loop_;
  DonorCounters counters_;
  std::optional<DonorOffice> office_;
};

TEST_F(DonorOfficeTest, DonorsAreReported_AndGetTheirOrders) {
  // Also a host without donors says so, once: it may have had some.
  ASSERT_TRUE(RunUntil([&] { return controller_.reports == 1; }));
  EXPECT_EQ(controller_.last().gateway(), "gateways/a");
  EXPECT_EQ(controller_.last().donors_size(), 0);
  far::Announcement announcement;
  announcement.address = "10.0.0.1";
  announcement.port = 7475;
  announcement.donated_bytes = 8;
  announcement.tenants = {{"red", 3}};
  announcement.pool = "kv";
  announcement.block_bytes = 4096;
  ASSERT_TRUE(far::ReplaceFolderFile(folder_ + "/d.donor", far::ToText(announcement)).ok());
  ASSERT_TRUE(RunUntil([&] { return controller_.reports == 2; }));
  const auto report = controller_.last();
  ASSERT_EQ(report.donors_size(), 1);
  EXPECT_EQ(report.donors(0).name(), "d");
  EXPECT_EQ(report.donors(0).address(), "10.0.0.1");
  EXPECT_EQ(report.donors(0).donated_bytes(), 8u);
  EXPECT_EQ(report.donors(0).tenants(0).tenant(), "red");
  EXPECT_EQ(report.donors(0).pool(), "kv");
  EXPECT_EQ(report.donors(0).block_bytes(), 4096u);
  std::optional<far::DonorOrders> orders;
  ASSERT_TRUE(RunUntil([&] {
    const auto file = far::ReadFolderFile(folder_ + "/d.order");
    if (file.ok()) orders = far::ReadOrders(file.value().text);
    return orders.has_value();
  }));
  EXPECT_EQ(orders->generation, 2);
  EXPECT_TRUE(orders->draining);
  EXPECT_EQ(orders->quotas, (far::BytesByTenant{{"red", 5}}));
  EXPECT_EQ(counters_.donors, 1u);
}

TEST_F(DonorOfficeTest, AHostThatHadDonorsGoesOnSayingThatItHasNone) {
  far::Announcement announcement;
  announcement.port = 7475;
  ASSERT_TRUE(far::ReplaceFolderFile(folder_ + "/d.donor", far::ToText(announcement)).ok());
  ASSERT_TRUE(RunUntil([&] { return controller_.last().donors_size() == 1; }));
  ASSERT_EQ(unlink((folder_ + "/d.donor").c_str()), 0);
  ASSERT_TRUE(RunUntil([&] { return controller_.last().donors_size() == 0; }));
  const int reports = controller_.reports;
  EXPECT_TRUE(RunUntil([&] { return controller_.reports > reports; }));
}

TEST_F(DonorOfficeTest, TheSocketIsForTheUserAndItsGroup) {
  struct stat state {};
  ASSERT_EQ(lstat((folder_ + "/agent.sock").c_str(), &state), 0);
  EXPECT_EQ(state.st_mode & 0777, 0660u);
}

TEST_F(DonorOfficeTest, AQuestionForABlockPoolReachesTheController) {
  const auto found = Ask({.tenant = "red", .bytes = 1, .pool = "kv"});
  ASSERT_TRUE(found.ok()) << found.status().text();
  EXPECT_EQ(found.value()[0].failure_domain, "pool-kv");
}

TEST_F(DonorOfficeTest, ProgramsGetTheControllersAnswer) {
  const auto found = Ask({.tenant = "red", .bytes = 1, .replicas = 1, .donors = 0});
  ASSERT_TRUE(found.ok()) << found.status().text();
  ASSERT_EQ(found.value().size(), 1u);
  EXPECT_EQ(found.value()[0].address, "10.0.0.2");
  EXPECT_EQ(found.value()[0].failure_domain, "zone-b");
  EXPECT_EQ(found.value()[0].name, "gateways/b/donors/d");
  const auto refused = Ask({.tenant = "blue", .bytes = 1, .replicas = 1, .donors = 0});
  EXPECT_EQ(refused.status().error(), ENOENT);
  EXPECT_EQ(refused.status().text(), "no pool");
  EXPECT_EQ(counters_.questions, 2u);
  EXPECT_EQ(counters_.refused_questions, 1u);
}

TEST_F(DonorOfficeTest, SilentProgramsKeepNobodyElseOut_AndNonsenseIsRefused) {
  std::vector<UniqueFd> silent;
  for (size_t i = 0; i < DonorDesk::kMostConnections - 1; ++i) silent.push_back(Connect());
  EXPECT_TRUE(Ask({.tenant = "red", .bytes = 1, .replicas = 1, .donors = 0}).ok());
  silent.push_back(Connect());
  // The agent closes a connection beyond the limit at once.
  EXPECT_FALSE(Ask({.tenant = "red", .bytes = 1, .replicas = 1, .donors = 0}).ok());
  silent.clear();
  for (int i = 0; i < 10; ++i) loop_.RunOnce(Milliseconds(20));
  const UniqueFd nonsense = Connect();
  const std::string text = "hello\nend\n";
  ASSERT_EQ(send(nonsense.get(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  std::string answer;
  ASSERT_TRUE(RunUntil([&] {
    char buffer[256];
    const ssize_t got = recv(nonsense.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (got > 0) answer.append(buffer, static_cast<size_t>(got));
    return far::IsComplete(answer);
  }));
  EXPECT_EQ(far::ReadAnswer(answer).status().error(), ENOENT);
}

}  // namespace
}  // namespace rocegw::agent
