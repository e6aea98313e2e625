// SPDX-License-Identifier: Apache-2.0
// Counter files of a device, as a program that keeps one open sees them.
#include "gateway/daemon/sysfs_counters.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

namespace rocegw::daemon {
namespace {

namespace fs = std::filesystem;

class SysfsCountersTest : public testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/rocegw-test-XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    root_ = pattern;
    ASSERT_TRUE(loop_.Open().ok());
  }
  void TearDown() override { fs::remove_all(root_); }
  std::string Path(const std::string& name, const std::string& device = "rocegw0") const {
    return root_ + "/class/infiniband/" + device + "/ports/1/" + name;
  }
  std::string Read(const std::string& name, const std::string& device = "rocegw0") const {
    std::string line;
    std::getline(std::ifstream(Path(name, device)), line);
    return line;
  }
  // The timer runs at least each second.
  bool Becomes(const std::string& name, const std::string& wanted) {
    for (int round = 0; round < 30 && Read(name) != wanted; ++round)
      loop_.RunOnce(Milliseconds(100));
    return Read(name) == wanted;
  }

  std::string root_;
  ControlLoop loop_;
  datapath::PortTraffic traffic_[2];
  std::function<bool()> in_use_ = [] { return true; };
};

TEST_F(SysfsCountersTest, Started_HasTheValuesInLinuxUnits) {
  traffic_[0] = {.tx_packets = 3, .tx_bytes = 400, .rx_packets = 5, .rx_bytes = 800};
  traffic_[1].tx_packets = 7;
  SysfsCounters counters(
      loop_, root_, [this](size_t device) { return traffic_[device]; }, in_use_);
  ASSERT_TRUE(counters.Start({"rocegw0", "rocegw1"}).ok());
  EXPECT_EQ(Read("counters/port_xmit_data"), "100") << "words of four bytes";
  EXPECT_EQ(Read("counters/port_rcv_data"), "200");
  EXPECT_EQ(Read("counters/port_xmit_packets"), "3");
  EXPECT_EQ(Read("hw_counters/rcvd_pkts"), "5");
  EXPECT_EQ(Read("hw_counters/tx_bytes"), "400");
  EXPECT_EQ(Read("counters/port_xmit_discards"), "0");
  EXPECT_EQ(Read("hw_counters/sent_pkts", "rocegw1"), "7");
}

TEST_F(SysfsCountersTest, OpenFile_ShowsLaterValues) {
  SysfsCounters counters(
      loop_, root_, [this](size_t device) { return traffic_[device]; }, in_use_);
  ASSERT_TRUE(counters.Start({"rocegw0"}).ok());
  const UniqueFd open(::open(Path("hw_counters/rcvd_pkts").c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(open.valid());
  traffic_[0].rx_packets = 1234567;
  ASSERT_TRUE(Becomes("hw_counters/rcvd_pkts", "1234567"));
  char text[16] = {};
  ASSERT_GT(::pread(open.get(), text, sizeof text - 1, 0), 0);
  EXPECT_STREQ(text, "1234567\n");
}

TEST_F(SysfsCountersTest, Stopped_AsksNobody) {
  int asked = 0;
  SysfsCounters counters(
      loop_, root_,
      [&](size_t) {
        ++asked;
        return datapath::PortTraffic{};
      },
      in_use_);
  ASSERT_TRUE(counters.Start({"rocegw0"}).ok());
  counters.Stop();
  const int before = asked;
  for (int round = 0; round < 12; ++round) loop_.RunOnce(Milliseconds(100));
  EXPECT_EQ(asked, before);
}

TEST_F(SysfsCountersTest, NoFolder_IsAnErrorThatNamesTheFile) {
  SysfsCounters counters(
      loop_, "/proc/nowhere", [](size_t) { return datapath::PortTraffic{}; }, in_use_);
  EXPECT_NE(counters.Start({"rocegw0"}).text().find("/proc/nowhere"), std::string::npos);
}

}  // namespace
}  // namespace rocegw::daemon
