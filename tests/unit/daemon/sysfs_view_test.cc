// SPDX-License-Identifier: Apache-2.0
// A device's files in the sysfs view.
#include "gateway/daemon/sysfs_view.h"

#include <endian.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace rocegw::daemon {
namespace {

namespace fs = std::filesystem;

class SysfsViewTest : public testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/rocegw-test-XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    base_ = pattern;
    device_.name = "rocegw0";
    device_.interface = "eth0";
    device_.node_guid = htobe64(0x001122FFFE334455);
    device_.gids = {wire::Gid::FromV4(0xC0000201), wire::Gid{}, wire::Gid::FromV4(0xC0000202)};
  }
  void TearDown() override { fs::remove_all(base_); }
  std::string Read(const std::string& name) const {
    std::string line;
    std::getline(std::ifstream(base_ + "/sysfs/class/" + name), line);
    return line;
  }
  bool Exists(const std::string& name) const { return fs::exists(base_ + "/sysfs/class/" + name); }

  std::string base_;
  session::Device device_;
};

TEST_F(SysfsViewTest, Created_HasWhatProgramsLookFor) {
  SysfsView view(base_ + "/sysfs");
  ASSERT_TRUE(view.Create({device_}, "0.1.0").ok());
  EXPECT_EQ(Read("infiniband/rocegw0/node_guid"), "0011:22ff:fe33:4455");
  EXPECT_EQ(Read("infiniband/rocegw0/node_type"), "1: CA");
  EXPECT_EQ(Read("infiniband/rocegw0/fw_ver"), "0.1.0");
  EXPECT_EQ(Read("infiniband/rocegw0/ports/1/state"), "4: ACTIVE");
  EXPECT_EQ(Read("infiniband/rocegw0/ports/1/link_layer"), "Ethernet");
  EXPECT_EQ(Read("infiniband/rocegw0/ports/1/gids/0"), "0000:0000:0000:0000:0000:ffff:c000:0201");
  EXPECT_EQ(Read("infiniband/rocegw0/ports/1/gids/1"), "0000:0000:0000:0000:0000:0000:0000:0000");
  EXPECT_EQ(Read("infiniband/rocegw0/ports/1/gid_attrs/types/2"), "RoCE v2");
  EXPECT_FALSE(Exists("infiniband/rocegw0/ports/1/gid_attrs/types/1"));
  EXPECT_EQ(Read("infiniband/rocegw0/ports/1/gid_attrs/ndevs/2"), "eth0");
  EXPECT_TRUE(Exists("infiniband/rocegw0/device/net/eth0"));
  EXPECT_EQ(Read("infiniband_verbs/uverbs_rocegw0/ibdev"), "rocegw0");
}

// Files read by libibumad (umad.c) and libibverbs.
TEST_F(SysfsViewTest, Created_HasEveryFileThatDiagnosticsRead) {
  SysfsView view(base_ + "/sysfs");
  device_.link_bytes_per_second = 12'500'000'000;
  ASSERT_TRUE(view.Create({device_}, "0.1.0").ok());
  for (const char* file :
       {"node_type", "fw_ver", "hw_rev", "hca_type", "board_id", "node_guid", "sys_image_guid",
        "node_desc", "ports/1/lid", "ports/1/lid_mask_count", "ports/1/sm_lid", "ports/1/sm_sl",
        "ports/1/state", "ports/1/phys_state", "ports/1/rate", "ports/1/cap_mask",
        "ports/1/link_layer", "ports/1/gids/0", "ports/1/pkeys/0"}) {
    EXPECT_NE(Read(std::string("infiniband/rocegw0/") + file), "") << file;
  }
  EXPECT_EQ(Read("infiniband/rocegw0/ports/1/rate"), "100 Gb/sec (4X)");
}

TEST_F(SysfsViewTest, DeviceGoesDownAndLosesAddresses_FilesFollow) {
  SysfsView view(base_ + "/sysfs");
  ASSERT_TRUE(view.Create({device_}, "0.1.0").ok());
  device_.up = false;
  device_.gids = {wire::Gid{}, wire::Gid::FromV4(0xC0000203)};
  ASSERT_TRUE(view.Update(device_).ok());
  EXPECT_EQ(Read("infiniband/rocegw0/ports/1/state"), "1: DOWN");
  EXPECT_EQ(Read("infiniband/rocegw0/ports/1/gids/0"), "0000:0000:0000:0000:0000:0000:0000:0000");
  EXPECT_EQ(Read("infiniband/rocegw0/ports/1/gids/1"), "0000:0000:0000:0000:0000:ffff:c000:0203");
  EXPECT_EQ(Read("infiniband/rocegw0/ports/1/gid_attrs/types/1"), "RoCE v2");
  EXPECT_FALSE(Exists("infiniband/rocegw0/ports/1/gid_attrs/types/0"));
  EXPECT_EQ(Read("infiniband/rocegw0/ports/1/gids/2"), "0000:0000:0000:0000:0000:0000:0000:0000");
}

TEST_F(SysfsViewTest, Gone_LeavesNothing) {
  {
    SysfsView view(base_ + "/sysfs");
    ASSERT_TRUE(view.Create({device_}, "0.1.0").ok());
  }
  EXPECT_FALSE(fs::exists(base_ + "/sysfs"));
}

TEST_F(SysfsViewTest, PlaceNotWritable_SaysWhere) {
  SysfsView view("/proc/rocegw-sysfs");
  const Status status = view.Create({device_}, "0.1.0");
  EXPECT_FALSE(status.ok());
  EXPECT_TRUE(status.text().starts_with("/proc/rocegw-sysfs/class/infiniband_verbs/"))
      << status.text();
}

}  // namespace
}  // namespace rocegw::daemon
