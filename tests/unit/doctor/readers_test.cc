// SPDX-License-Identifier: Apache-2.0
// Readers of the host: recorded texts of the kernel, and this process.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "gateway/doctor/read_host.h"

namespace rocegw::doctor {
namespace {

namespace fs = std::filesystem;

// /proc made of files.
class MadeUpProc : public ::testing::Test {
 protected:
  MadeUpProc() { EXPECT_NE(mkdtemp(root_), nullptr); }
  ~MadeUpProc() override { fs::remove_all(root_); }
  void File(const std::string& name, const std::string& text) const {
    fs::create_directories(fs::path(root_ + ("/" + name)).parent_path());
    std::ofstream(root_ + ("/" + name)) << text;
  }
  char root_[32] = "/tmp/rocegw-doctor-XXXXXX";
};

TEST(EffectiveCapabilities, AreTakenFromTheStatus) {
  EXPECT_EQ(EffectiveCapabilities("Name:\tx\nCapEff:\t0000000000081000\nCapBnd:\t0\n"), 0x81000U);
  EXPECT_EQ(EffectiveCapabilities("Name:\tx\n"), 0U);
}

TEST(IsBefore, ComparesNumbersNotTexts) {
  EXPECT_TRUE(IsBefore("6.1.0-18-amd64", 6, 4));
  EXPECT_TRUE(IsBefore("5.10.0\n", 6, 4));
  EXPECT_FALSE(IsBefore("6.4.0", 6, 4));
  EXPECT_FALSE(IsBefore("6.18.5", 6, 4));
  EXPECT_FALSE(IsBefore("strange", 6, 4));
}

TEST_F(MadeUpProc, ReadHost_TakesSysctlsHugePagesAndDevices) {
  File("proc/self/status", "CapEff:\t0000000000080000\n");
  File("proc/self/fd/0", "");
  File("proc/self/fd/1", "");
  File("proc/sys/net/core/wmem_max", "212992\n");
  File("proc/sys/kernel/yama/ptrace_scope", "1\n");
  File("proc/sys/kernel/osrelease", "6.1.0\n");
  File("proc/sys/vm/overcommit_memory", "2\n");
  File("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "3\n");
  File("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "2\n");
  File("sys/class/infiniband/rxe0/parent", "eth0\n");
  File("sys/class/infiniband/mlx5_0/node_desc", "x\n");
  const std::string root = root_;
  const HostFacts host =
      ReadHost({}, {.proc = root + "/proc", .sys = root + "/sys", .dev = root + "/dev"});
  EXPECT_EQ(host.open_files, 2U);
  EXPECT_TRUE(host.may_trace);
  EXPECT_FALSE(host.may_administer_network);
  EXPECT_EQ(host.send_buffer_limit, 212992U);
  EXPECT_EQ(host.ptrace_scope, 1);
  EXPECT_TRUE(host.userfaultfd_old);
  EXPECT_TRUE(host.strict_overcommit);
  EXPECT_FALSE(host.userfaultfd_device);
  EXPECT_EQ(host.huge_pages, 3U);
  EXPECT_EQ(host.free_huge_page_bytes, 4U << 20);
  EXPECT_EQ(host.rxe_devices, std::vector<std::string>{"rxe0"});
  EXPECT_GE(host.processors, 1U);
}

TEST_F(MadeUpProc, ReadHost_TakesTheLeastMemoryLimitAboveTheProcess) {
  const std::string root = root_;
  const auto limit = [&] {
    return ReadHost({}, {.proc = root + "/proc", .sys = root + "/sys", .dev = root + "/dev"})
        .memory_limit;
  };
  EXPECT_EQ(limit(), UINT64_MAX) << "no control groups";
  File("proc/self/cgroup", "1:name=systemd:/x\n0::/a.slice/b.service\n");
  EXPECT_EQ(limit(), UINT64_MAX) << "no controller of memory";
  File("sys/fs/cgroup/a.slice/b.service/memory.max", "max\n");
  File("sys/fs/cgroup/a.slice/memory.max", "8192\n");
  EXPECT_EQ(limit(), 8192U);
  File("sys/fs/cgroup/a.slice/b.service/memory.max", "4096\n");
  EXPECT_EQ(limit(), 4096U);
  // In a namespace of control groups the own one is the top.
  File("proc/self/cgroup", "0::/\n");
  File("sys/fs/cgroup/memory.max", "12288\n");
  EXPECT_EQ(limit(), 12288U);
}

TEST_F(MadeUpProc, ReadHost_LooksAtFilesAndInterfacesOfTheGateway) {
  GatewayFacts gateway;
  gateway.runtime_dir = root_;
  gateway.sockets = {{root_ + std::string("/attach.sock"), 0600, true}};
  PortFacts port;
  port.interface = "lo";
  gateway.ports = {port};
  File("attach.sock", "");
  fs::permissions(root_, fs::perms(0701));
  const HostFacts host = ReadHost(gateway);
  EXPECT_TRUE(host.runtime_dir.exists);
  EXPECT_EQ(host.runtime_dir.mode, 0701U);
  EXPECT_EQ(host.runtime_dir.uid, getuid());
  EXPECT_TRUE(host.sockets.at(gateway.sockets[0].path).exists);
  EXPECT_FALSE(host.sockets.at(gateway.sockets[0].path).socket);
  EXPECT_TRUE(host.interfaces.at("lo").features.loopback);
  EXPECT_TRUE(host.interfaces.at("lo").features.features.contains("tx-generic-segmentation"));
  EXPECT_TRUE(host.interfaces.at("lo").failed_routers.empty());
}

}  // namespace
}  // namespace rocegw::doctor
