// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/fleet/announcement.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "gateway/far/fleet/ask_agent.h"
#include "gateway/far/fleet/folder_file.h"

namespace rocegw::far {
namespace {

TEST(Announcement, SurvivesItsText) {
  Announcement said;
  said.address = "10.77.0.2";
  said.port = 7475;
  said.donated_bytes = uint64_t{8} << 30;
  said.leased_bytes = 5;
  said.leases = 2;
  said.sessions = 1;
  said.tenants = {{"default", 3}, {"red", 2}};
  said.draining = true;
  said.generation = 7;
  said.shares = 91;
  said.version = "1.2";
  said.pool = "kv";
  said.block_bytes = 65536;
  const auto read = ReadAnnouncement(ToText(said));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->address, "10.77.0.2");
  EXPECT_EQ(read->port, 7475u);
  EXPECT_EQ(read->donated_bytes, said.donated_bytes);
  EXPECT_EQ(read->leased_bytes, 5u);
  EXPECT_EQ(read->leases, 2u);
  EXPECT_EQ(read->sessions, 1u);
  EXPECT_EQ(read->tenants, said.tenants);
  EXPECT_TRUE(read->draining);
  EXPECT_EQ(read->generation, 7);
  EXPECT_EQ(read->shares, 91);
  EXPECT_EQ(read->version, "1.2");
  EXPECT_EQ(read->pool, "kv");
  EXPECT_EQ(read->block_bytes, 65536u);
  EXPECT_EQ(ProblemOf(*read), nullptr);
  said.pool = "KV 1";
  EXPECT_NE(ProblemOf(said), nullptr);
  said.pool = "kv";
  said.block_bytes = (16 << 20) + 1;
  EXPECT_NE(ProblemOf(said), nullptr);
}

TEST(DonorQuestion, NamesAPoolOrNone) {
  DonorQuestion question{.tenant = "red", .bytes = 1, .replicas = 2, .donors = 64, .pool = "kv"};
  EXPECT_EQ(ReadQuestion(ToText(question))->pool, "kv");
  question.pool.clear();
  EXPECT_EQ(ReadQuestion(ToText(question))->pool, "");
  EXPECT_EQ(ReadQuestion(ToText(question))->replicas, 2u);
}

TEST(Announcement, NamesTheTenantsWithTheMost) {
  Announcement said;
  said.port = 1;
  for (int tenant = 0; tenant < 100; tenant++) {
    said.tenants["t" + std::to_string(tenant)] = static_cast<uint64_t>(tenant);
  }
  const auto read = ReadAnnouncement(ToText(said));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->tenants.size(), kMostTenants);
  EXPECT_TRUE(read->tenants.contains("t99"));
  EXPECT_FALSE(read->tenants.contains("t0"));
}

TEST(Announcement, RefusesOtherTexts) {
  Announcement said;
  said.port = 1;
  const std::string good = ToText(said);
  EXPECT_FALSE(ReadAnnouncement(""));
  EXPECT_FALSE(ReadAnnouncement(good.substr(0, good.size() - 1)));  // half written
  EXPECT_FALSE(ReadAnnouncement("rocegw-donor 2" + good.substr(14)));
  EXPECT_FALSE(ReadAnnouncement("rocegw-donor 1\nport 70000\nend\n"));
  EXPECT_FALSE(ReadAnnouncement("rocegw-donor 1\nport 1x\nend\n"));
  EXPECT_FALSE(ReadAnnouncement("rocegw-donor 1\nport 1\ndraining 2\nend\n"));
  EXPECT_FALSE(ReadAnnouncement("rocegw-donor 1\nport 1\ntenant a\nend\n"));
  EXPECT_FALSE(ReadAnnouncement(good + std::string(kMostText, ' ') + "\nend\n"));
  EXPECT_TRUE(ReadAnnouncement("rocegw-donor 1\nport 1\nlater thing\n\nend\n"));
}

TEST(Announcement, OrdersAndQuestionsSurviveTheirText) {
  DonorOrders orders;
  orders.generation = 3;
  orders.shares = 92;
  orders.draining = true;
  orders.quotas = {{"red", 0}, {"blue", 5}};
  EXPECT_EQ(ReadOrders(ToText(orders)), orders);
  orders.tenant_bytes = 0;
  EXPECT_EQ(ReadOrders(ToText(orders)), orders);
  DonorQuestion question;
  question.tenant = "red";
  question.bytes = 1 << 20;
  question.replicas = 2;
  question.donors = 5;
  const auto read = ReadQuestion(ToText(question));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->tenant, "red");
  EXPECT_EQ(read->bytes, uint64_t{1} << 20);
  EXPECT_EQ(read->replicas, 2u);
  EXPECT_EQ(read->donors, 5u);
}

TEST(Announcement, AnswersAreDonorsOrARefusal) {
  const std::string text = ToText(std::vector<NamedDonor>{
      {"10.77.0.2", 7475, "zone-a", "gateways/a/donors/donor"}, {"fd77::3", 1, "b", "n"}});
  EXPECT_TRUE(IsComplete(text));
  EXPECT_FALSE(IsComplete(text.substr(0, text.size() - 2)));
  const auto read = ReadAnswer(text);
  ASSERT_TRUE(read.ok());
  ASSERT_EQ(read.value().size(), 2u);
  EXPECT_EQ(read.value()[0].address, "10.77.0.2");
  EXPECT_EQ(read.value()[0].port, 7475u);
  EXPECT_EQ(read.value()[0].failure_domain, "zone-a");
  EXPECT_EQ(read.value()[1].name, "n");
  const auto refused = ReadAnswer(RefusalText("no room\nfor it"));
  EXPECT_EQ(refused.status().error(), ENOENT);
  EXPECT_EQ(refused.status().text(), "no room for it");
  EXPECT_EQ(ReadAnswer("rocegw-donor-answer 1\ndonor a\nend\n").status().error(), EPROTO);
}

TEST(Announcement, NamesAreLabels) {
  EXPECT_TRUE(IsDonorName("donor-1"));
  for (const char* name :
       {"", "-a", "a-", "A", "a/b", "..", "a.b", "a123456789012345678901234567890"}) {
    EXPECT_FALSE(IsDonorName(name)) << name;
  }
}

class FolderFileTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  const std::string folder_ = testing::TempDir() + "folder_file_" +
                              std::to_string(::testing::UnitTest::GetInstance()->random_seed()) +
                              ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(FolderFileTest, IsReplacedAsAWhole) {
  const std::string path = folder_ + "/a.donor";
  ASSERT_TRUE(ReplaceFolderFile(path, "first").ok());
  ASSERT_TRUE(ReplaceFolderFile(path, "next").ok());
  const auto read = ReadFolderFile(path);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read.value().text, "next");
  EXPECT_NE(read.value().changed_ns, 0);
  EXPECT_EQ(ReadFolderFile(folder_ + "/b.donor").status().error(), ENOENT);
}

TEST_F(FolderFileTest, OthersCanReadItWhateverTheUmask) {
  const std::string path = folder_ + "/a.order";
  const mode_t old_mask = umask(0077);
  const Status written = ReplaceFolderFile(path, "orders");
  umask(old_mask);
  ASSERT_TRUE(written.ok());
  struct stat state {};
  ASSERT_EQ(stat(path.c_str(), &state), 0);
  EXPECT_EQ(state.st_mode & 0777, 0644u);
}

TEST_F(FolderFileTest, NothingHostileIsRead) {
  const std::string path = folder_ + "/a.donor";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(ReadFolderFile(path).status().error(), EINVAL);  // does not wait for a writer
  std::filesystem::remove(path);
  std::filesystem::create_symlink("/etc/passwd", path);
  EXPECT_EQ(ReadFolderFile(path).status().error(), ELOOP);
  std::filesystem::remove(path);
  ASSERT_TRUE(ReplaceFolderFile(path, std::string(kMostText + 1, 'x')).ok());
  EXPECT_EQ(ReadFolderFile(path).status().error(), EINVAL);
}

TEST_F(FolderFileTest, WithoutAnAgentTheQuestionFailsAtOnce) {
  const auto answer = AskAgent(folder_, {}, std::chrono::seconds(30));
  EXPECT_EQ(answer.status().error(), ENOENT);
  EXPECT_NE(answer.status().text().find("donors_dir"), std::string::npos);
}

}  // namespace
}  // namespace rocegw::far
