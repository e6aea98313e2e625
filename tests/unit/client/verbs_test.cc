// SPDX-License-Identifier: Apache-2.0
// Attaching, devices, and memory regions.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "gateway/client/process/redirect.h"
#include "gateway/client/process/sysfs_tree.h"
#include "tests/unit/client/verbs_fixture.h"

namespace rocegw::testing {
namespace {

TEST_F(VerbsTest, GetDeviceList_WithoutGateway_IsThatOfTheMachine) {
  setenv("ROCEGW_SOCKET", "/tmp/rocegw-there-is-none.sock", 1);
  int count = -1;
  ibv_device** list = ibv_get_device_list(&count);
  EXPECT_EQ(nullptr, FindDevice("rocegw0"));
  if (list != nullptr) ibv_free_device_list(list);
}

TEST_F(VerbsTest, GetDeviceList_Disabled_DoesNotAttach) {
  Start();
  setenv("ROCEGW_DISABLE", "1", 1);
  EXPECT_EQ(nullptr, FindDevice("rocegw0"));
  unsetenv("ROCEGW_DISABLE");
  EXPECT_EQ(0u, daemon_->connections());
}

TEST_F(VerbsTest, Attach_Greeting_HasMagicVersionAndMemory) {
  Start();
  ASSERT_NE(nullptr, FindDevice("rocegw0"));
  ASSERT_EQ(1u, daemon_->Requests(ROCEGW_MSG_HELLO).size());
  const RecordedRequest greeting = daemon_->Last(ROCEGW_MSG_HELLO);
  EXPECT_EQ(sizeof(rocegw_hello), greeting.bytes.size());
  const auto hello = greeting.As<rocegw_hello>();
  EXPECT_EQ(sizeof(rocegw_hello), hello.header.length);
  EXPECT_EQ(ROCEGW_ABI_MAGIC, hello.magic);
  EXPECT_EQ(ROCEGW_ABI_MAJOR, hello.major);
  EXPECT_TRUE(greeting.had_descriptor);
}

TEST_F(VerbsTest, Attach_OtherMajorVersion_IsNoGateway) {
  FakeOptions options;
  options.major = ROCEGW_ABI_MAJOR + 1;
  Start(options);
  EXPECT_EQ(nullptr, FindDevice("rocegw0"));
  EXPECT_TRUE(daemon_->WaitForHangups(1));
}

TEST_F(VerbsTest, Attach_RefusedByTheDaemon_IsNoGateway) {
  Start();
  daemon_->Fail(ROCEGW_MSG_HELLO, EACCES);
  EXPECT_EQ(nullptr, FindDevice("rocegw0"));
}

TEST_F(VerbsTest, GetDeviceList_TwoDevices_KeepTheirAddresses) {
  FakeOptions options;
  options.devices = 2;
  Start(options);
  ibv_device* first = FindDevice("rocegw0");
  ibv_device* second = FindDevice("rocegw1");
  ASSERT_NE(nullptr, first);
  ASSERT_NE(nullptr, second);
  EXPECT_NE(first, second);
  EXPECT_EQ(first, FindDevice("rocegw0"));
  EXPECT_EQ(second, FindDevice("rocegw1"));
  EXPECT_EQ(IBV_NODE_CA, first->node_type);
  EXPECT_EQ(IBV_TRANSPORT_IB, first->transport_type);
  EXPECT_STREQ("uverbs_rocegw0", first->dev_name);
  EXPECT_EQ(0x0100fffe00c00003ULL, ibv_get_device_guid(second));
  EXPECT_EQ(-1, ibv_get_device_index(first)) << "no kernel gave it an index";
}

TEST_F(VerbsTest, GetDeviceList_AfterDaemonRestart_AttachesAnewWithTheSamePointers) {
  FakeOptions options;
  Start(options);
  options.socket_path = daemon_->socket_path();
  ibv_device* before = FindDevice("rocegw0");
  ibv_context* context = Open();
  ASSERT_NE(nullptr, context);
  daemon_->Die();
  ibv_port_attr port;
  EXPECT_EQ(EIO, ibv_query_port(context, 1, &port));
  EXPECT_EQ(nullptr, FindDevice("rocegw0"));
  FakeDaemon again(options);
  EXPECT_EQ(before, FindDevice("rocegw0"));
  EXPECT_EQ(EIO, ibv_query_port(context, 1, &port)) << "what belonged to the old daemon stays dead";
  EXPECT_EQ(0, ibv_close_device(context)) << "but can be taken away";
  context = Open();
  ASSERT_NE(nullptr, context);
  EXPECT_EQ(0, ibv_query_port(context, 1, &port));
  EXPECT_EQ(0, ibv_close_device(context));
}

TEST_F(VerbsTest, Sysfs_ManyLooks_AreOneSession) {
  Start();
  for (int i = 0; i < 20; ++i) {
    char buffer[512];
    const std::string led =
        client::RedirectPath("/sys/class/infiniband/rocegw0/ports/1/state", buffer, sizeof buffer);
    EXPECT_NE(led.rfind("/sys/class/", 0), 0u) << led;
    EXPECT_TRUE(led.ends_with("/class/infiniband/rocegw0/ports/1/state")) << led;
    EXPECT_STREQ("/dev/null",
                 client::RedirectPath("/dev/infiniband/uverbs_rocegw0", buffer, sizeof buffer));
  }
  EXPECT_EQ(1u, daemon_->connections());
}

TEST_F(VerbsTest, Sysfs_OtherGateway_IsAskedItself) {
  Start();
  char buffer[512];
  const std::string first = client::RedirectPath("/sys/class/infiniband", buffer, sizeof buffer);
  setenv("ROCEGW_SOCKET", "/tmp/rocegw-there-is-none.sock", 1);
  EXPECT_STREQ("/sys/class/infiniband",
               client::RedirectPath("/sys/class/infiniband", buffer, sizeof buffer));
  EXPECT_NE("/sys/class/infiniband", first);
}

// Programs keep the text that ibv_get_sysfs_path returned, and other threads may be reading it.
TEST_F(VerbsTest, Sysfs_RootOfAnEarlierGateway_KeepsItsText) {
  const auto root = [] {
    client::Session* const session = client::Session::Acquire();
    if (session == nullptr) return "no session";
    const char* const path = client::SysfsRoot(session);
    session->Release();
    return path;
  };
  Start();
  const char* const first = root();
  const std::string text = first;
  FakeOptions options;
  options.sysfs = false;
  Start(options);
  const char* const second = root();
  EXPECT_NE(text, second);
  EXPECT_EQ(text, first);
  EXPECT_EQ(second, root());
  std::filesystem::remove_all(second);
}

TEST_F(VerbsTest, Sysfs_TreeThatIsNotVisibleHere_IsWrittenByTheLibrary) {
  FakeOptions options;
  options.sysfs = false;
  Start(options);
  const ibv_device* device = FindDevice("rocegw0");
  ASSERT_NE(nullptr, device);
  const std::filesystem::path tree = std::filesystem::path(device->ibdev_path) / "../../..";
  EXPECT_EQ(0u, tree.string().rfind("/tmp/rocegw-sysfs-", 0)) << tree;
  const auto content = [&](const std::string& file) {
    std::ifstream in(std::string(device->ibdev_path) + "/" + file);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  EXPECT_EQ("RoCE v2\n", content("ports/1/gid_attrs/types/2"));
  EXPECT_EQ("eth0\n", content("ports/1/gid_attrs/ndevs/2"));
  EXPECT_EQ("0000:0000:0000:0000:0000:ffff:0a00:0002\n", content("ports/1/gids/2"));
  EXPECT_EQ("4: ACTIVE\n", content("ports/1/state"));
  // Files read by libibumad (umad.c) and libibverbs.
  for (const char* file :
       {"node_type", "fw_ver", "hw_rev", "hca_type", "board_id", "node_guid", "sys_image_guid",
        "node_desc", "ports/1/lid", "ports/1/lid_mask_count", "ports/1/sm_lid", "ports/1/sm_sl",
        "ports/1/state", "ports/1/phys_state", "ports/1/rate", "ports/1/cap_mask",
        "ports/1/link_layer", "ports/1/gids/2", "ports/1/pkeys/0"}) {
    EXPECT_NE("", content(file)) << file;
  }
  EXPECT_TRUE(std::filesystem::is_directory(std::string(device->ibdev_path) + "/device/net/eth0"));
  EXPECT_TRUE(std::filesystem::exists(std::string(device->dev_path) + "/ibdev"));
  std::filesystem::remove_all(std::filesystem::canonical(tree));
}

TEST_F(VerbsTest, OpenDevice_Descriptors_AreUsableAndCloseOnExec) {
  Start();
  ibv_context* context = Open();
  ASSERT_NE(nullptr, context);
  for (const int fd : {context->async_fd, context->cmd_fd}) {
    EXPECT_GE(fd, 0);
    EXPECT_NE(0, fcntl(fd, F_GETFD) & FD_CLOEXEC);
    EXPECT_EQ(0, fcntl(fd, F_GETFL) & O_NONBLOCK);
  }
  EXPECT_EQ(2, context->num_comp_vectors);
  EXPECT_EQ(0, ibv_close_device(context));
}

TEST_F(VerbsTest, OpenDevice_Refused_SaysWhy) {
  Start();
  daemon_->Fail(ROCEGW_MSG_OPEN_CONTEXT, ENOMEM);
  errno = 0;
  EXPECT_EQ(nullptr, Open());
  EXPECT_EQ(ENOMEM, errno);
}

TEST_F(VerbsTest, Queries_AnswerFromTheDaemonWithinTheSizesTheCallerHas) {
  Start();
  ibv_context* context = Open();
  ASSERT_NE(nullptr, context);
  ibv_device_attr attr;
  ASSERT_EQ(0, ibv_query_device(context, &attr));
  EXPECT_STREQ("0.1.0-fake", attr.fw_ver);
  EXPECT_EQ(1024, attr.max_qp);
  EXPECT_EQ(16, attr.max_qp_rd_atom);
  EXPECT_EQ(IBV_ATOMIC_HCA, attr.atomic_cap);
  EXPECT_EQ(1, attr.phys_port_cnt);

  ibv_device_attr_ex extended;
  ASSERT_EQ(0, ibv_query_device_ex(context, nullptr, &extended));
  EXPECT_EQ(1024, extended.orig_attr.max_qp);
  // Calls through the operation table pass the size that the program was compiled with.
  struct {
    ibv_device_attr_ex attr;
    uint8_t behind[64];
  } guarded;
  memset(static_cast<void*>(&guarded), 0xee, sizeof guarded);
  verbs_context* verbs = verbs_get_ctx(context);
  ASSERT_EQ(0, verbs->query_device_ex(context, nullptr, &guarded.attr, sizeof(ibv_device_attr)));
  EXPECT_EQ(0xee, reinterpret_cast<uint8_t*>(&guarded)[sizeof(ibv_device_attr)]);

  ibv_port_attr port;
  ASSERT_EQ(0, ibv_query_port(context, 1, &port));
  EXPECT_EQ(IBV_PORT_ACTIVE, port.state);
  EXPECT_EQ(IBV_MTU_1024, port.active_mtu);
  EXPECT_EQ(16, port.gid_tbl_len);
  EXPECT_EQ(IBV_LINK_LAYER_ETHERNET, port.link_layer);
  EXPECT_EQ(EINVAL, ibv_query_port(context, 2, &port));
  // Old programs have a structure that ends before port_cap_flags2.
  uint8_t small[sizeof(ibv_port_attr)];
  memset(small, 0xee, sizeof small);
  ASSERT_EQ(0, (ibv_query_port)(context, 1, reinterpret_cast<_compat_ibv_port_attr*>(small)));
  EXPECT_EQ(0xee, small[offsetof(ibv_port_attr, port_cap_flags2)]);

  uint16_t pkey = 0;
  EXPECT_EQ(0, ibv_query_pkey(context, 1, 0, &pkey));
  EXPECT_EQ(0xffff, pkey);
  EXPECT_EQ(-1, ibv_query_pkey(context, 1, 1, &pkey));
  EXPECT_EQ(0, ibv_get_pkey_index(context, 1, 0xffff));
  EXPECT_EQ(-1, ibv_get_pkey_index(context, 1, 0x1234));
  EXPECT_EQ(0, ibv_close_device(context));
}

TEST_F(VerbsTest, Gids_TableWithHoles_IsReportedAsDriversDo) {
  Start();
  ibv_context* context = Open();
  ASSERT_NE(nullptr, context);
  ibv_gid gid;
  ASSERT_EQ(0, ibv_query_gid(context, 1, 2, &gid));
  EXPECT_EQ(2, gid.raw[15]);
  ASSERT_EQ(0, ibv_query_gid(context, 1, 3, &gid)) << "unused entries are zero";
  EXPECT_EQ(0, gid.raw[15]);
  EXPECT_EQ(-1, ibv_query_gid(context, 1, 16, &gid));
  EXPECT_EQ(EINVAL, errno);
  EXPECT_EQ(-1, ibv_query_gid(context, 1, -1, &gid));

  ibv_gid_entry entry;
  ASSERT_EQ(0, ibv_query_gid_ex(context, 1, 4, &entry, 0));
  EXPECT_EQ(3, entry.gid.raw[15]);
  EXPECT_EQ(4u, entry.gid_index);
  EXPECT_EQ(static_cast<uint32_t>(IBV_GID_TYPE_ROCE_V2), entry.gid_type);
  EXPECT_EQ(7u, entry.ndev_ifindex);
  EXPECT_EQ(ENODATA, ibv_query_gid_ex(context, 1, 1, &entry, 0));
  EXPECT_EQ(EINVAL, ibv_query_gid_ex(context, 2, 0, &entry, 0));

  ibv_gid_entry table[4];
  ASSERT_EQ(3, ibv_query_gid_table(context, table, 4, 0));
  EXPECT_EQ(4u, table[2].gid_index);
  EXPECT_EQ(-EINVAL, ibv_query_gid_table(context, table, 2, 0));
  EXPECT_EQ(0, ibv_close_device(context));
}

TEST_F(QpTest, RegMr_AsksForTheRangeAndHandsOutTheKeys) {
  const auto asked = daemon_->Last(ROCEGW_MSG_REG_MR).As<rocegw_reg_mr>();
  EXPECT_EQ(pd_->handle, asked.pd);
  EXPECT_EQ(reinterpret_cast<uint64_t>(buffer_), asked.address);
  EXPECT_EQ(asked.address, asked.iova);
  EXPECT_EQ(sizeof buffer_, asked.length);
  EXPECT_EQ(3u, asked.access);
  EXPECT_EQ(0u, asked.region);
  EXPECT_EQ(0x100u, mr_->lkey);
  EXPECT_EQ(buffer_, mr_->addr);
}

TEST_F(QpTest, RegMr_MemoryThatIsNotThere_IsEfault) {
  void* hole = mmap(nullptr, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(static_cast<char*>(hole) + 4096, 4096);
  mprotect(static_cast<char*>(hole) + 8192, 4096, PROT_READ);
  const size_t before = daemon_->Requests(ROCEGW_MSG_REG_MR).size();
  errno = 0;
  EXPECT_EQ(nullptr, ibv_reg_mr(pd_, hole, 3 * 4096, IBV_ACCESS_LOCAL_WRITE));
  EXPECT_EQ(EFAULT, errno);
  EXPECT_EQ(nullptr,
            ibv_reg_mr(pd_, static_cast<char*>(hole) + 8192, 4096, IBV_ACCESS_LOCAL_WRITE));
  EXPECT_EQ(EFAULT, errno) << "read-only memory cannot be a target";
  EXPECT_EQ(before, daemon_->Requests(ROCEGW_MSG_REG_MR).size());
  ibv_mr* read_only = ibv_reg_mr(pd_, static_cast<char*>(hole) + 8192, 4096, 0);
  ASSERT_NE(nullptr, read_only) << "but a source";
  EXPECT_EQ(0, ibv_dereg_mr(read_only));
  munmap(hole, 4096);
  munmap(static_cast<char*>(hole) + 8192, 4096);
}

TEST_F(QpTest, RegMr_ImpossibleRequests_AreRefused) {
  errno = 0;
  EXPECT_EQ(nullptr, ibv_reg_mr(pd_, buffer_, 0, IBV_ACCESS_LOCAL_WRITE));
  EXPECT_EQ(EINVAL, errno);
  EXPECT_EQ(nullptr, ibv_reg_mr(pd_, buffer_, 16, IBV_ACCESS_REMOTE_WRITE));
  EXPECT_EQ(EINVAL, errno) << "remote write needs local write";
  constexpr int kFlushPersistent = 1 << 9;
  EXPECT_EQ(nullptr, ibv_reg_mr(pd_, buffer_, 16, kFlushPersistent));
  EXPECT_EQ(EOPNOTSUPP, errno);
  EXPECT_EQ(nullptr, ibv_reg_mr(pd_, buffer_, ~size_t{0}, 0));
  EXPECT_EQ(EINVAL, errno);
}

TEST_F(QpTest, RegMrIova2_OptionalFlags_AreAcceptedAndNotPassedOn) {
  const unsigned access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING;
  ibv_mr* mr = ibv_reg_mr_iova2(pd_, buffer_, 64, 0xabc000, access);
  ASSERT_NE(nullptr, mr);
  const auto asked = daemon_->Last(ROCEGW_MSG_REG_MR).As<rocegw_reg_mr>();
  EXPECT_EQ(0xabc000u, asked.iova);
  EXPECT_EQ(static_cast<uint32_t>(IBV_ACCESS_LOCAL_WRITE), asked.access);
  EXPECT_EQ(0, ibv_dereg_mr(mr));
}

TEST_F(QpTest, ReregMr_ChangesTheRegionUnderItsKeys) {
  const ibv_mr before = *mr_;
  ibv_pd* const other = ibv_alloc_pd(context_);
  ASSERT_NE(nullptr, other);
  ASSERT_EQ(0, ibv_rereg_mr(mr_, IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS, other,
                            nullptr, 0, IBV_ACCESS_LOCAL_WRITE));
  auto asked = daemon_->Last(ROCEGW_MSG_REREG_MR).As<rocegw_rereg_mr>();
  EXPECT_EQ(before.handle, asked.mr);
  EXPECT_EQ(other->handle, asked.pd);
  EXPECT_EQ(unsigned{IBV_ACCESS_LOCAL_WRITE}, asked.access);
  EXPECT_EQ(reinterpret_cast<uint64_t>(buffer_), asked.address);
  EXPECT_EQ(asked.address, asked.iova);
  EXPECT_EQ(sizeof buffer_, asked.length);
  EXPECT_EQ(other, mr_->pd);
  ASSERT_EQ(0, ibv_rereg_mr(mr_, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, buffer_ + 64, 128, 0));
  asked = daemon_->Last(ROCEGW_MSG_REREG_MR).As<rocegw_rereg_mr>();
  EXPECT_EQ(reinterpret_cast<uint64_t>(buffer_ + 64), asked.address);
  EXPECT_EQ(asked.address, asked.iova);
  EXPECT_EQ(128u, asked.length);
  EXPECT_EQ(unsigned{IBV_ACCESS_LOCAL_WRITE}, asked.access);
  EXPECT_EQ(other->handle, asked.pd);
  EXPECT_EQ(buffer_ + 64, mr_->addr);
  EXPECT_EQ(128u, mr_->length);
  EXPECT_EQ(before.handle, mr_->handle);
  EXPECT_EQ(before.lkey, mr_->lkey);
  EXPECT_EQ(before.rkey, mr_->rkey);
  EXPECT_EQ(1u, daemon_->Requests(ROCEGW_MSG_REG_MR).size()) << "the first one alone";
  EXPECT_EQ(0, ibv_dereg_mr(mr_));
  mr_ = nullptr;
  EXPECT_EQ(1u, daemon_->Requests(ROCEGW_MSG_DEREG_MR).size());
  EXPECT_EQ(0, ibv_dealloc_pd(other));
}

// Daemons of minor 10 and less do not know this request.
class OlderDaemonTest : public QpTest {
 protected:
  void SetUp() override {
    FakeOptions options;
    options.minor = 10;
    Prepare(options);
  }
};

TEST_F(OlderDaemonTest, ReregMr_NewKeysOverWhatWasAskedFor_AndTheOldOnesAreGone) {
  const uint32_t old_key = mr_->lkey;
  ibv_pd* const other = ibv_alloc_pd(context_);
  ASSERT_NE(nullptr, other);
  ASSERT_EQ(0, ibv_rereg_mr(mr_, IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS, other,
                            nullptr, 0, IBV_ACCESS_LOCAL_WRITE));
  auto asked = daemon_->Last(ROCEGW_MSG_REG_MR).As<rocegw_reg_mr>();
  EXPECT_EQ(other->handle, asked.pd);
  EXPECT_EQ(unsigned{IBV_ACCESS_LOCAL_WRITE}, asked.access);
  EXPECT_EQ(reinterpret_cast<uint64_t>(buffer_), asked.address);
  EXPECT_EQ(sizeof buffer_, asked.length);
  EXPECT_EQ(other, mr_->pd);
  EXPECT_NE(old_key, mr_->lkey);
  EXPECT_EQ(1u, daemon_->Requests(ROCEGW_MSG_DEREG_MR).size());
  ASSERT_EQ(0, ibv_rereg_mr(mr_, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, buffer_ + 64, 128, 0));
  asked = daemon_->Last(ROCEGW_MSG_REG_MR).As<rocegw_reg_mr>();
  EXPECT_EQ(reinterpret_cast<uint64_t>(buffer_ + 64), asked.address);
  EXPECT_EQ(asked.address, asked.iova);
  EXPECT_EQ(128u, asked.length);
  EXPECT_EQ(other->handle, asked.pd);
  EXPECT_EQ(buffer_ + 64, mr_->addr);
  EXPECT_EQ(128u, mr_->length);
  EXPECT_EQ(0, ibv_dereg_mr(mr_));
  mr_ = nullptr;
  EXPECT_EQ(0, ibv_dealloc_pd(other));
}

TEST_F(QpTest, ReregMr_Refused_TheRegionIsAsItWas) {
  const ibv_mr before = *mr_;
  const auto refused = [&](int flags, void* address, size_t length, int access) {
    return ibv_rereg_mr(mr_, flags, nullptr, address, length, access) == IBV_REREG_MR_ERR_INPUT;
  };
  EXPECT_TRUE(refused(0, nullptr, 0, 0));
  EXPECT_TRUE(refused(8, nullptr, 0, 0));
  EXPECT_TRUE(refused(IBV_REREG_MR_CHANGE_PD, nullptr, 0, 0));
  EXPECT_TRUE(refused(IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, 64, 0));
  EXPECT_TRUE(refused(IBV_REREG_MR_CHANGE_TRANSLATION, buffer_, 0, 0));
  EXPECT_TRUE(refused(IBV_REREG_MR_CHANGE_ACCESS, nullptr, 0, IBV_ACCESS_REMOTE_WRITE));
  EXPECT_EQ(EINVAL, errno);
  EXPECT_EQ(0u, daemon_->Requests(ROCEGW_MSG_REREG_MR).size());
  daemon_->Fail(ROCEGW_MSG_REREG_MR, ENOMEM);
  EXPECT_TRUE(refused(IBV_REREG_MR_CHANGE_ACCESS, nullptr, 0, IBV_ACCESS_LOCAL_WRITE));
  EXPECT_EQ(ENOMEM, errno);
  EXPECT_EQ(before.lkey, mr_->lkey);
  EXPECT_EQ(before.handle, mr_->handle);
  EXPECT_EQ(0u, daemon_->Requests(ROCEGW_MSG_DEREG_MR).size());
}

TEST_F(QpTest, ImportDevice_OfOurs_IsRefusedAsNotSupported) {
  const int duplicate = dup(context_->cmd_fd);
  errno = 0;
  EXPECT_EQ(nullptr, ibv_import_device(duplicate));
  EXPECT_EQ(EOPNOTSUPP, errno);
  close(duplicate);
}

TEST_F(QpTest, DeregMr_Refused_KeepsTheRegion) {
  daemon_->Fail(ROCEGW_MSG_DEREG_MR, EBUSY);
  EXPECT_EQ(EBUSY, ibv_dereg_mr(mr_));
  daemon_->Fail(ROCEGW_MSG_DEREG_MR, 0);
}

TEST_F(VerbsTest, Fork_WhileAnotherThreadWaitsForASilentDaemon_GoesOn) {
  char folder[] = "/tmp/rocegw-silent.XXXXXX";
  ASSERT_NE(nullptr, mkdtemp(folder));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  snprintf(address.sun_path, sizeof address.sun_path, "%s/attach.sock", folder);
  const int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  ASSERT_EQ(0, bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address));
  ASSERT_EQ(0, listen(listener, 4));
  setenv("ROCEGW_SOCKET", address.sun_path, 1);
  std::atomic<bool> answered = false;
  std::thread waits([&] {
    ibv_device** list = ibv_get_device_list(nullptr);
    if (list != nullptr) ibv_free_device_list(list);
    answered = true;
  });
  // The greeting is in the socket without an answer.
  const int daemon = accept(listener, nullptr, nullptr);
  pollfd greeting = {daemon, POLLIN, 0};
  ASSERT_EQ(1, poll(&greeting, 1, 10000));
  const pid_t child = fork();
  if (child == 0) _exit(0);
  EXPECT_FALSE(answered);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(0, status);
  close(daemon);
  close(listener);
  waits.join();
  std::filesystem::remove_all(folder);
}

TEST_F(VerbsTest, OpenDevice_ManyThreadsAtOnce_AllSucceed) {
  Start();
  std::atomic<int> failed = 0;
  std::vector<std::thread> threads;
  threads.reserve(16);
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        ibv_device** list = ibv_get_device_list(nullptr);
        ibv_context* context = list != nullptr ? ibv_open_device(list[0]) : nullptr;
        if (context == nullptr || ibv_close_device(context) != 0) ++failed;
        ibv_free_device_list(list);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(0, failed);
}

TEST_F(QpTest, QueryQp_WritesTheStateOnlyWhenAskedForIt) {
  ToState(IBV_QPS_INIT);
  qp_->state = IBV_QPS_SQD;
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(0, ibv_query_qp(qp_, &attr, IBV_QP_CAP, &init));
  EXPECT_EQ(IBV_QPS_SQD, qp_->state);
  ASSERT_EQ(0, ibv_query_qp(qp_, &attr, IBV_QP_STATE, &init));
  EXPECT_EQ(IBV_QPS_INIT, qp_->state);
}

TEST_F(QpTest, RegMr_ZeroBasedByFlagsThatAreNoConstant_BeginsAtZero) {
  volatile unsigned flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED;
  ibv_mr* mr = ibv_reg_mr_iova2(pd_, buffer_, 64, reinterpret_cast<uint64_t>(buffer_), flags);
  ASSERT_NE(nullptr, mr);
  EXPECT_EQ(0u, daemon_->Last(ROCEGW_MSG_REG_MR).As<rocegw_reg_mr>().iova);
  EXPECT_EQ(0, ibv_dereg_mr(mr));
}

}  // namespace
}  // namespace rocegw::testing
