// SPDX-License-Identifier: Apache-2.0
// The library's verbs against a scripted daemon: what it asks, what it makes of the answers, and
// how it behaves when the daemon refuses or dies.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/client/fake_daemon.h"

namespace rocegw::testing {
namespace {

class VerbsTest : public ::testing::Test {
 protected:
  void Start(const FakeOptions& options = {}) {
    daemon_ = std::make_unique<FakeDaemon>(options);
    setenv("ROCEGW_SOCKET", daemon_->socket_path().c_str(), 1);
  }
  void TearDown() override {
    daemon_.reset();
    unsetenv("ROCEGW_SOCKET");
  }

  ibv_device* FindDevice(const std::string& name) {
    int count = 0;
    ibv_device** list = ibv_get_device_list(&count);
    if (list == nullptr) return nullptr;
    ibv_device* found = nullptr;
    for (int i = 0; i < count; ++i) {
      if (name == ibv_get_device_name(list[i])) found = list[i];
    }
    ibv_free_device_list(list);
    return found;
  }
  ibv_context* Open() {
    ibv_device* device = FindDevice("rocegw0");
    return device != nullptr ? ibv_open_device(device) : nullptr;
  }

  std::unique_ptr<FakeDaemon> daemon_;
};

// A context with everything that one connected QP needs.
class QpTest : public VerbsTest {
 protected:
  void SetUp() override { Prepare({}); }
  void Prepare(const FakeOptions& options, ibv_qp_type type = IBV_QPT_RC) {
    Start(options);
    context_ = Open();
    ASSERT_NE(nullptr, context_);
    pd_ = ibv_alloc_pd(context_);
    channel_ = ibv_create_comp_channel(context_);
    cq_ = ibv_create_cq(context_, 16, this, channel_, 0);
    ASSERT_NE(nullptr, cq_);
    ibv_qp_init_attr init = InitAttr(type);
    qp_ = ibv_create_qp(pd_, &init);
    ASSERT_NE(nullptr, qp_);
    cap_ = init.cap;
    mr_ =
        ibv_reg_mr(pd_, buffer_, sizeof buffer_, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    ASSERT_NE(nullptr, mr_);
  }
  void TearDown() override {
    if (qp_ != nullptr) {
      EXPECT_EQ(0, ibv_destroy_qp(qp_));
    }
    if (cq_ != nullptr) {
      EXPECT_EQ(0, ibv_destroy_cq(cq_));
    }
    if (channel_ != nullptr) {
      EXPECT_EQ(0, ibv_destroy_comp_channel(channel_));
    }
    if (mr_ != nullptr) {
      EXPECT_EQ(0, ibv_dereg_mr(mr_));
    }
    if (pd_ != nullptr) {
      EXPECT_EQ(0, ibv_dealloc_pd(pd_));
    }
    if (context_ != nullptr) {
      EXPECT_EQ(0, ibv_close_device(context_));
    }
    VerbsTest::TearDown();
  }
  ibv_qp_init_attr InitAttr(ibv_qp_type type = IBV_QPT_RC) {
    ibv_qp_init_attr init{};
    init.qp_context = &init_context_;
    init.send_cq = init.recv_cq = cq_;
    init.cap = {10, 20, 2, 3, 32};
    init.qp_type = type;
    return init;
  }
  void ToState(ibv_qp_state state) {
    ibv_qp_attr attr{};
    attr.qp_state = state;
    ASSERT_EQ(0, ibv_modify_qp(qp_, &attr, IBV_QP_STATE));
  }
  ibv_sge Sge(size_t offset, uint32_t length) {
    return {reinterpret_cast<uint64_t>(buffer_) + offset, length, mr_->lkey};
  }
  FakeQp Fake() { return daemon_->Qp(qp_->qp_num); }

  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_qp* qp_ = nullptr;
  ibv_mr* mr_ = nullptr;
  ibv_qp_cap cap_{};
  int init_context_ = 0;
  alignas(4096) char buffer_[8192] = {};
};

// ------------------------------------------------------------------------------------------------
// attach and devices

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
  EXPECT_NE(ibv_get_device_index(first), ibv_get_device_index(second));
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

// ------------------------------------------------------------------------------------------------
// memory

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
  EXPECT_EQ(nullptr, ibv_reg_mr(pd_, buffer_, 16, IBV_ACCESS_ON_DEMAND));
  EXPECT_EQ(EOPNOTSUPP, errno);
  EXPECT_EQ(nullptr, ibv_reg_mr(pd_, buffer_, ~size_t{0}, 0));
  EXPECT_EQ(EINVAL, errno);
  EXPECT_EQ(nullptr, ibv_reg_dmabuf_mr(pd_, 0, 4096, 0, 1, 0));
  EXPECT_EQ(EOPNOTSUPP, errno);
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

TEST_F(QpTest, DeregMr_Refused_KeepsTheRegion) {
  daemon_->Fail(ROCEGW_MSG_DEREG_MR, EBUSY);
  EXPECT_EQ(EBUSY, ibv_dereg_mr(mr_));
  daemon_->Fail(ROCEGW_MSG_DEREG_MR, 0);
}

// ------------------------------------------------------------------------------------------------
// queue pairs

TEST_F(QpTest, CreateQp_RequestAndResult) {
  const auto asked = daemon_->Last(ROCEGW_MSG_CREATE_QP).As<rocegw_create_qp>();
  EXPECT_EQ(pd_->handle, asked.pd);
  EXPECT_EQ(cq_->handle, asked.send_cq);
  EXPECT_EQ(cq_->handle, asked.recv_cq);
  EXPECT_EQ(static_cast<uint32_t>(IBV_QPT_RC), asked.type);
  EXPECT_EQ(10u, asked.max_send_wr);
  EXPECT_EQ(20u, asked.max_recv_wr);
  EXPECT_EQ(2u, asked.max_send_sge);
  EXPECT_EQ(3u, asked.max_recv_sge);
  EXPECT_EQ(32u, asked.max_inline);
  EXPECT_NE(0u, asked.cookie);
  EXPECT_EQ(16u, cap_.max_send_wr) << "what was given is written back";
  EXPECT_EQ(32u, cap_.max_recv_wr);
  EXPECT_EQ(IBV_QPS_RESET, qp_->state);
  EXPECT_EQ(&init_context_, qp_->qp_context);
  EXPECT_EQ(pd_, qp_->pd);
  EXPECT_EQ(cq_, qp_->send_cq);
  EXPECT_EQ(nullptr, ibv_qp_to_qp_ex(qp_));
}

TEST_F(QpTest, CreateQp_WhatWeDoNotHave_IsRefusedPolitely) {
  errno = 0;
  ibv_qp_init_attr init = InitAttr(IBV_QPT_RAW_PACKET);
  EXPECT_EQ(nullptr, ibv_create_qp(pd_, &init));
  EXPECT_EQ(EOPNOTSUPP, errno);
  init = InitAttr();
  init.send_cq = nullptr;
  EXPECT_EQ(nullptr, ibv_create_qp(pd_, &init));
  EXPECT_EQ(EINVAL, errno);
  ibv_qp_init_attr_ex extended{};
  extended.qp_type = IBV_QPT_RC;
  extended.send_cq = extended.recv_cq = cq_;
  extended.cap = {1, 1, 1, 1, 0};
  extended.pd = pd_;
  extended.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_RX_HASH;
  EXPECT_EQ(nullptr, ibv_create_qp_ex(context_, &extended));
  EXPECT_EQ(EOPNOTSUPP, errno);
  extended.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
  ibv_qp* plain = ibv_create_qp_ex(context_, &extended);
  ASSERT_NE(nullptr, plain) << "an empty wish is no wish";
  EXPECT_EQ(0, ibv_destroy_qp(plain));
}

TEST_F(QpTest, ModifyQp_SendsOnlyWhatTheMaskNames) {
  ibv_qp_attr attr;
  memset(static_cast<void*>(&attr), 0x5a, sizeof attr);
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_2048;
  attr.dest_qp_num = 0x777;
  attr.rq_psn = 0x123456;
  attr.max_dest_rd_atomic = 4;
  attr.min_rnr_timer = 12;
  attr.ah_attr = {};
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = 1;
  attr.ah_attr.sl = 3;
  attr.ah_attr.grh.dgid.raw[15] = 9;
  attr.ah_attr.grh.sgid_index = 2;
  attr.ah_attr.grh.hop_limit = 64;
  attr.ah_attr.grh.traffic_class = 106;
  attr.ah_attr.grh.flow_label = 0x12345;
  const int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                   IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  ASSERT_EQ(0, ibv_modify_qp(qp_, &attr, mask));
  const auto asked = daemon_->Last(ROCEGW_MSG_MODIFY_QP).As<rocegw_modify_qp>();
  EXPECT_EQ(qp_->handle, asked.qp);
  EXPECT_EQ(static_cast<uint32_t>(mask), asked.attr_mask);
  EXPECT_EQ(static_cast<uint32_t>(IBV_QPS_RTR), asked.attr.qp_state);
  EXPECT_EQ(static_cast<uint32_t>(IBV_MTU_2048), asked.attr.path_mtu);
  EXPECT_EQ(0x777u, asked.attr.dest_qpn);
  EXPECT_EQ(0x123456u, asked.attr.rq_psn);
  EXPECT_EQ(4, asked.attr.max_dest_rd_atomic);
  EXPECT_EQ(12, asked.attr.min_rnr_timer);
  EXPECT_EQ(3, asked.attr.service_level);
  EXPECT_EQ(9, asked.attr.av.dgid[15]);
  EXPECT_EQ(2, asked.attr.av.sgid_index);
  EXPECT_EQ(64, asked.attr.av.hop_limit);
  EXPECT_EQ(106, asked.attr.av.traffic_class);
  EXPECT_EQ(0x12345u, asked.attr.av.flow_label);
  EXPECT_EQ(0u, asked.attr.qkey);
  EXPECT_EQ(0u, asked.attr.sq_psn);
  EXPECT_EQ(0, asked.attr.timeout);
  EXPECT_EQ(IBV_QPS_RTR, qp_->state);

  ibv_qp_attr back;
  ibv_qp_init_attr init;
  ASSERT_EQ(0, ibv_query_qp(qp_, &back, IBV_QP_STATE, &init));
  EXPECT_EQ(0x777u, back.dest_qp_num);
  EXPECT_EQ(1, back.ah_attr.is_global);
  EXPECT_EQ(9, back.ah_attr.grh.dgid.raw[15]);
  EXPECT_EQ(16u, init.cap.max_send_wr);
  EXPECT_EQ(cq_, init.send_cq);
}

TEST_F(QpTest, Ece_IsAskedOfTheDaemonAndSetBeforeRtrOnly) {
  ibv_ece ece = {1, 2, 3};
  ASSERT_EQ(0, ibv_query_ece(qp_, &ece));
  EXPECT_EQ(0x02BADDu, ece.vendor_id);
  EXPECT_EQ(7u, ece.options);
  EXPECT_EQ(0u, ece.comp_mask);
  ece.options = 0x15;
  ASSERT_EQ(0, ibv_set_ece(qp_, &ece));
  EXPECT_EQ(5u, ece.options) << "what was accepted comes back";
  EXPECT_EQ(qp_->handle, daemon_->Last(ROCEGW_MSG_SET_ECE).As<rocegw_set_ece>().qp);
  ece.comp_mask = 1;
  EXPECT_EQ(EINVAL, ibv_set_ece(qp_, &ece));
  ece.comp_mask = 0;
  EXPECT_EQ(EINVAL, ibv_set_ece(qp_, nullptr));
  EXPECT_EQ(EINVAL, ibv_query_ece(qp_, nullptr));
  ToState(IBV_QPS_INIT);
  EXPECT_EQ(0, ibv_set_ece(qp_, &ece));
  ToState(IBV_QPS_RTR);
  EXPECT_EQ(EINVAL, ibv_set_ece(qp_, &ece));
  EXPECT_EQ(0, ibv_query_ece(qp_, &ece));
  EXPECT_EQ(2u, daemon_->Requests(ROCEGW_MSG_SET_ECE).size());
}

TEST_F(QpTest, Ece_OfAnOlderDaemon_IsNotSupported) {
  daemon_->Fail(ROCEGW_MSG_QUERY_ECE, ENOSYS);
  daemon_->Fail(ROCEGW_MSG_SET_ECE, ENOSYS);
  ibv_ece ece = {};
  EXPECT_EQ(EOPNOTSUPP, ibv_query_ece(qp_, &ece));
  EXPECT_EQ(EOPNOTSUPP, ibv_set_ece(qp_, &ece));
}

TEST_F(QpTest, ModifyQp_AddressWithoutGid_IsRefusedHere) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  EXPECT_EQ(EINVAL, ibv_modify_qp(qp_, &attr, IBV_QP_STATE | IBV_QP_AV));
  EXPECT_EQ(EOPNOTSUPP, ibv_modify_qp(qp_, &attr, IBV_QP_ALT_PATH));
  EXPECT_TRUE(daemon_->Requests(ROCEGW_MSG_MODIFY_QP).empty());
}

TEST_F(QpTest, ModifyQp_Refused_ChangesNothingHere) {
  daemon_->Fail(ROCEGW_MSG_MODIFY_QP, EINVAL);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTS;
  EXPECT_EQ(EINVAL, ibv_modify_qp(qp_, &attr, IBV_QP_STATE));
  EXPECT_EQ(IBV_QPS_RESET, qp_->state);
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND;
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(EINVAL, ibv_post_send(qp_, &wr, &bad));
}

TEST_F(QpTest, PostAndPoll_ThroughSharedMemory) {
  ToState(IBV_QPS_RTS);
  strcpy(buffer_, "payload");
  ibv_sge sge = Sge(0, 8);
  ibv_send_wr wr{};
  wr.wr_id = 1;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(0, ibv_post_send(qp_, &wr, &bad));
  const FakeQp fake = Fake();
  EXPECT_TRUE(fake.DoorbellRang());
  EXPECT_EQ(1u, fake.control->sq_producer);
  EXPECT_EQ(1u, fake.SendSlot(0)->wr_id);
  EXPECT_EQ(ROCEGW_WQE_COPIED | ROCEGW_WQE_SIGNALED, fake.SendSlot(0)->flags);
  EXPECT_STREQ("payload", reinterpret_cast<char*>(fake.SendPayload(0)));

  rocegw_cqe cqe{};
  cqe.wr_id = fake.SendSlot(0)->wr_id;
  cqe.opcode = IBV_WC_SEND;
  daemon_->Complete(cq_->handle, fake.reply.worker, fake, cqe);
  ibv_wc wc;
  ASSERT_EQ(1, ibv_poll_cq(cq_, 1, &wc));
  EXPECT_EQ(1u, wc.wr_id);
  EXPECT_EQ(qp_->qp_num, wc.qp_num);
  EXPECT_EQ(0, ibv_poll_cq(cq_, 1, &wc));
}

TEST_F(QpTest, Receive_PayloadFromTheRing_LandsInTheBuffer) {
  ToState(IBV_QPS_INIT);
  ibv_sge sge = Sge(100, 64);
  ibv_recv_wr wr{};
  wr.wr_id = 5;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  ASSERT_EQ(0, ibv_post_recv(qp_, &wr, &bad));
  const FakeQp fake = Fake();
  EXPECT_EQ(1u, fake.control->rq_producer);
  memcpy(fake.ReceivePayload(0), "incoming", 9);
  rocegw_cqe cqe{};
  cqe.wr_id = 5;
  cqe.opcode = static_cast<uint8_t>(IBV_WC_RECV);
  cqe.byte_length = 9;
  cqe.flags = ROCEGW_CQE_RECEIVE | ROCEGW_CQE_PAYLOAD_IN_RING;
  daemon_->Complete(cq_->handle, fake.reply.worker, fake, cqe);
  ibv_wc wc;
  ASSERT_EQ(1, ibv_poll_cq(cq_, 1, &wc));
  EXPECT_EQ(IBV_WC_RECV, wc.opcode);
  EXPECT_STREQ("incoming", buffer_ + 100);
}

TEST_F(QpTest, Reset_ForgetsWhatWasPostedAndCompleted) {
  ToState(IBV_QPS_RTS);
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND;
  ibv_send_wr* bad = nullptr;
  for (int i = 0; i < 16; ++i) ASSERT_EQ(0, ibv_post_send(qp_, &wr, &bad));
  EXPECT_EQ(ENOMEM, ibv_post_send(qp_, &wr, &bad));
  const FakeQp fake = Fake();
  daemon_->Complete(cq_->handle, fake.reply.worker, fake, rocegw_cqe{});
  ToState(IBV_QPS_RESET);
  ibv_wc wc;
  EXPECT_EQ(0, ibv_poll_cq(cq_, 1, &wc));
  EXPECT_EQ(EINVAL, ibv_post_send(qp_, &wr, &bad));
  ToState(IBV_QPS_RTS);
  EXPECT_EQ(0, ibv_post_send(qp_, &wr, &bad));
  EXPECT_EQ(17u, fake.control->sq_producer);
}

TEST_F(QpTest, DestroyQp_ItsCompletionsDisappear) {
  const FakeQp fake = Fake();
  daemon_->Complete(cq_->handle, 0, fake, rocegw_cqe{});
  ASSERT_EQ(0, ibv_destroy_qp(qp_));
  qp_ = nullptr;
  ibv_wc wc;
  EXPECT_EQ(0, ibv_poll_cq(cq_, 1, &wc));
}

TEST_F(QpTest, SleepingWorker_IsWokenThroughItsDescriptor) {
  ToState(IBV_QPS_RTS);
  const FakeQp fake = Fake();
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(0, ibv_post_send(qp_, &wr, &bad));
  EXPECT_FALSE(daemon_->WasWoken(fake.reply.worker));
  daemon_->SetNeedWakeup(fake.reply.worker, true);
  ASSERT_EQ(0, ibv_post_send(qp_, &wr, &bad));
  EXPECT_TRUE(daemon_->WasWoken(fake.reply.worker));
}

TEST_F(QpTest, EightThreads_PostAndCreateAndDestroyTogether) {
  std::vector<std::thread> threads;
  threads.reserve(8);
  std::atomic<int> failures = 0;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        ibv_qp_init_attr init = InitAttr();
        ibv_qp* qp = ibv_create_qp(pd_, &init);
        ibv_mr* mr = ibv_reg_mr(pd_, buffer_, 256, IBV_ACCESS_LOCAL_WRITE);
        if (qp == nullptr || mr == nullptr) {
          ++failures;
          return;
        }
        ibv_qp_attr attr{};
        attr.qp_state = IBV_QPS_RTS;
        failures += ibv_modify_qp(qp, &attr, IBV_QP_STATE) != 0;
        ibv_sge sge = {reinterpret_cast<uint64_t>(buffer_), 16, mr->lkey};
        ibv_send_wr wr{};
        wr.sg_list = &sge;
        wr.num_sge = 1;
        wr.opcode = IBV_WR_SEND;
        ibv_send_wr* bad = nullptr;
        failures += ibv_post_send(qp, &wr, &bad) != 0;
        ibv_wc wc;
        failures += ibv_poll_cq(cq_, 1, &wc) != 0;
        failures += ibv_destroy_qp(qp) != 0;
        failures += ibv_dereg_mr(mr) != 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(0, failures);
}

// ------------------------------------------------------------------------------------------------
// events

TEST_F(QpTest, CompletionEvent_ReachesItsQueue) {
  ASSERT_EQ(0, ibv_req_notify_cq(cq_, 0));
  EXPECT_EQ(ROCEGW_CQ_ARM_ANY, daemon_->Cq(cq_->handle).control->arm);
  daemon_->SendCompletionEvent(cq_->handle);
  ibv_cq* which = nullptr;
  void* its_context = nullptr;
  ASSERT_EQ(0, ibv_get_cq_event(channel_, &which, &its_context));
  EXPECT_EQ(cq_, which);
  EXPECT_EQ(this, its_context);
  ibv_ack_cq_events(cq_, 1);
}

TEST_F(QpTest, CompletionEvent_NonBlocking_IsEagain) {
  fcntl(channel_->fd, F_SETFL, O_NONBLOCK);
  ibv_cq* which = nullptr;
  void* its_context = nullptr;
  EXPECT_EQ(-1, ibv_get_cq_event(channel_, &which, &its_context));
  EXPECT_EQ(EAGAIN, errno);
}

TEST_F(QpTest, CompletionEvent_OfADestroyedQueue_IsSkipped) {
  ibv_cq* other = ibv_create_cq(context_, 4, nullptr, channel_, 0);
  ASSERT_NE(nullptr, other);
  EXPECT_EQ(EBUSY, ibv_destroy_comp_channel(channel_));
  daemon_->SendCompletionEvent(other->handle);
  daemon_->SendCompletionEvent(cq_->handle);
  ASSERT_EQ(0, ibv_destroy_cq(other)) << "an event that was never read needs no acknowledgement";
  ibv_cq* which = nullptr;
  void* its_context = nullptr;
  ASSERT_EQ(0, ibv_get_cq_event(channel_, &which, &its_context));
  EXPECT_EQ(cq_, which);
  ibv_ack_cq_events(cq_, 1);
}

TEST_F(QpTest, DestroyCq_WaitsForAcknowledgements) {
  ibv_cq* other = ibv_create_cq(context_, 4, nullptr, channel_, 0);
  ASSERT_NE(nullptr, other);
  daemon_->SendCompletionEvent(other->handle);
  ibv_cq* which = nullptr;
  void* its_context = nullptr;
  ASSERT_EQ(0, ibv_get_cq_event(channel_, &which, &its_context));
  const size_t destroyed_before = daemon_->Requests(ROCEGW_MSG_DESTROY_CQ).size();
  std::atomic<bool> acknowledged = false;
  std::atomic<bool> too_early = false;
  std::thread destroyer([&] {
    EXPECT_EQ(0, ibv_destroy_cq(other));
    too_early = !acknowledged;
  });
  while (daemon_->Requests(ROCEGW_MSG_DESTROY_CQ).size() == destroyed_before) {
    std::this_thread::yield();
  }
  acknowledged = true;
  ibv_ack_cq_events(other, 1);
  destroyer.join();
  EXPECT_FALSE(too_early);
}

TEST_F(QpTest, AsyncEvents_NameTheirObjects) {
  rocegw_async_event event{};
  event.type = IBV_EVENT_QP_FATAL;
  event.kind = ROCEGW_OBJECT_QP;
  event.cookie = Fake().cookie;
  daemon_->SendAsyncEvent(event);
  event.type = IBV_EVENT_QP_FATAL;
  event.cookie = 0x1234567800000000;  // nobody's
  daemon_->SendAsyncEvent(event);
  event.type = IBV_EVENT_SQ_DRAINED;
  event.cookie = Fake().cookie;
  daemon_->SendAsyncEvent(event);
  event.type = IBV_EVENT_CQ_ERR;
  event.kind = ROCEGW_OBJECT_CQ;
  event.cookie = daemon_->Cq(cq_->handle).cookie;
  daemon_->SendAsyncEvent(event);
  event.type = IBV_EVENT_PORT_ERR;
  event.kind = ROCEGW_OBJECT_PORT;
  daemon_->SendAsyncEvent(event);

  ibv_async_event got;
  ASSERT_EQ(0, ibv_get_async_event(context_, &got));
  EXPECT_EQ(IBV_EVENT_QP_FATAL, got.event_type);
  EXPECT_EQ(qp_, got.element.qp);
  ibv_ack_async_event(&got);
  ASSERT_EQ(0, ibv_get_async_event(context_, &got));
  EXPECT_EQ(IBV_EVENT_SQ_DRAINED, got.event_type);
  EXPECT_EQ(qp_, got.element.qp);
  ibv_ack_async_event(&got);
  ASSERT_EQ(0, ibv_get_async_event(context_, &got));
  EXPECT_EQ(IBV_EVENT_CQ_ERR, got.event_type);
  EXPECT_EQ(cq_, got.element.cq);
  ibv_ack_async_event(&got);
  ASSERT_EQ(0, ibv_get_async_event(context_, &got));
  EXPECT_EQ(IBV_EVENT_PORT_ERR, got.event_type);
  EXPECT_EQ(1, got.element.port_num);
  ibv_ack_async_event(&got);
}

// A program that only polls learns it too: what it has under way completes as flushed.
TEST_F(QpTest, DaemonDies_PollersGetTheirRequestsFlushed) {
  ToState(IBV_QPS_INIT);
  ToState(IBV_QPS_RTR);
  ToState(IBV_QPS_RTS);
  ibv_recv_wr receive{};
  receive.wr_id = 7;
  ibv_recv_wr* bad_receive = nullptr;
  ASSERT_EQ(0, ibv_post_recv(qp_, &receive, &bad_receive));
  ibv_send_wr send{};
  send.wr_id = 8;
  send.opcode = IBV_WR_SEND;
  ibv_send_wr* bad_send = nullptr;
  ASSERT_EQ(0, ibv_post_send(qp_, &send, &bad_send));
  daemon_->Die();
  std::vector<uint64_t> flushed;
  while (flushed.size() < 2) {
    ibv_wc wc[4];
    const int got = ibv_poll_cq(cq_, 4, wc);
    for (int i = 0; i < got; ++i) {
      EXPECT_EQ(IBV_WC_WR_FLUSH_ERR, wc[i].status);
      flushed.push_back(wc[i].wr_id);
    }
  }
  EXPECT_EQ((std::vector<uint64_t>{8, 7}), flushed);
  ibv_wc wc;
  for (int i = 0; i < 5000; ++i) ASSERT_EQ(0, ibv_poll_cq(cq_, 1, &wc));
}

TEST_F(QpTest, DaemonDies_ProgramsLearnItAndCanCleanUp) {
  daemon_->Die();
  pollfd look = {context_->async_fd, POLLIN, 0};
  ASSERT_EQ(1, poll(&look, 1, 20000));
  ibv_async_event event;
  ASSERT_EQ(0, ibv_get_async_event(context_, &event));
  EXPECT_EQ(IBV_EVENT_DEVICE_FATAL, event.event_type);
  EXPECT_EQ(-1, ibv_get_async_event(context_, &event));
  EXPECT_EQ(EIO, errno);
  ibv_cq* which = nullptr;
  void* its_context = nullptr;
  EXPECT_EQ(-1, ibv_get_cq_event(channel_, &which, &its_context));
  EXPECT_EQ(EIO, errno);
  EXPECT_EQ(nullptr, ibv_alloc_pd(context_));
  EXPECT_EQ(EIO, errno);
  ibv_qp_attr attr{};
  EXPECT_EQ(EIO, ibv_modify_qp(qp_, &attr, IBV_QP_STATE));
}

// ------------------------------------------------------------------------------------------------
// datagrams

class DatagramTest : public QpTest {
 protected:
  void SetUp() override { Prepare({}, IBV_QPT_UD); }
};

TEST_F(DatagramTest, CreateAh_ChecksTheSourceGid) {
  ibv_ah_attr attr{};
  attr.port_num = 1;
  errno = 0;
  EXPECT_EQ(nullptr, ibv_create_ah(pd_, &attr));
  EXPECT_EQ(EINVAL, errno);
  attr.is_global = 1;
  attr.grh.sgid_index = 1;  // unused
  EXPECT_EQ(nullptr, ibv_create_ah(pd_, &attr));
  EXPECT_EQ(EINVAL, errno);
  attr.grh.sgid_index = 2;
  attr.grh.dgid.raw[15] = 77;
  ibv_ah* ah = ibv_create_ah(pd_, &attr);
  ASSERT_NE(nullptr, ah);
  EXPECT_EQ(pd_, ah->pd);

  ToState(IBV_QPS_RTS);
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND_WITH_IMM;
  wr.wr.ud.ah = ah;
  wr.wr.ud.remote_qpn = 0x99;
  wr.wr.ud.remote_qkey = 0x11111111;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(0, ibv_post_send(qp_, &wr, &bad));
  const rocegw_send_wqe* wqe = Fake().SendSlot(0);
  EXPECT_EQ(77, wqe->u.ud.av.dgid[15]);
  EXPECT_EQ(2, wqe->u.ud.av.sgid_index);
  EXPECT_EQ(0x99u, wqe->u.ud.remote_qpn);
  EXPECT_EQ(0, ibv_destroy_ah(ah));
}

TEST_F(DatagramTest, CreateAhFromWc_AnswersTheSender) {
  uint8_t grh[40] = {};
  grh[20] = 0x45;  // an IPv4 header in the second half
  grh[21] = 0x20;
  grh[32] = 10;
  grh[35] = 200;  // from 10.0.0.200
  grh[36] = 10;
  grh[39] = 2;  // to 10.0.0.2, which is GID 2
  ibv_wc wc{};
  wc.wc_flags = IBV_WC_GRH;
  ibv_ah_attr attr;
  ASSERT_EQ(0, ibv_init_ah_from_wc(context_, 1, &wc, reinterpret_cast<ibv_grh*>(grh), &attr));
  EXPECT_EQ(2, attr.grh.sgid_index);
  EXPECT_EQ(0xff, attr.grh.dgid.raw[11]);
  EXPECT_EQ(200, attr.grh.dgid.raw[15]);
  EXPECT_EQ(0x20, attr.grh.traffic_class);
  ibv_ah* ah = ibv_create_ah_from_wc(pd_, &wc, reinterpret_cast<ibv_grh*>(grh), 1);
  ASSERT_NE(nullptr, ah);
  EXPECT_EQ(0, ibv_destroy_ah(ah));
  wc.wc_flags = 0;
  EXPECT_EQ(nullptr, ibv_create_ah_from_wc(pd_, &wc, reinterpret_cast<ibv_grh*>(grh), 1));
}

// ------------------------------------------------------------------------------------------------
// fork

// Runs body in a forked child; its result is the child's exit status.
template <typename Body>
int InChild(Body body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

TEST_F(QpTest, Fork_ChildCannotReachTheParentsQueues) {
  ToState(IBV_QPS_RTS);
  const FakeQp fake = Fake();
  daemon_->Complete(cq_->handle, fake.reply.worker, fake, rocegw_cqe{});
  EXPECT_EQ(0, InChild([&] {
              ibv_wc wc;
              if (ibv_poll_cq(cq_, 1, &wc) != 0) return 1;
              ibv_send_wr wr{};
              wr.opcode = IBV_WR_SEND;
              ibv_send_wr* bad = nullptr;
              ibv_post_send(qp_, &wr, &bad);
              if (ibv_alloc_pd(context_) != nullptr || errno != EIO) return 2;
              if (ibv_destroy_qp(qp_) != 0) return 3;
              if (ibv_destroy_cq(cq_) != 0) return 4;
              if (ibv_dereg_mr(mr_) != 0) return 5;
              return 0;
            }));
  EXPECT_EQ(0u, fake.control->sq_producer);
  EXPECT_FALSE(fake.DoorbellRang());
  ibv_wc wc;
  EXPECT_EQ(1, ibv_poll_cq(cq_, 1, &wc)) << "the parent still has what is its own";
  EXPECT_EQ(1u, daemon_->connections());
  EXPECT_EQ(0u, daemon_->hangups());
}

TEST_F(QpTest, Fork_ChildAttachesOnItsOwn) {
  EXPECT_EQ(0, InChild([&] {
              ibv_device* device = FindDevice("rocegw0");
              if (device != context_->device) return 1;
              ibv_context* context = ibv_open_device(device);
              if (context == nullptr) return 2;
              ibv_pd* pd = ibv_alloc_pd(context);
              if (pd == nullptr) return 3;
              ibv_mr* mr = ibv_reg_mr(pd, buffer_, 64, IBV_ACCESS_LOCAL_WRITE);
              if (mr == nullptr) return 4;
              if (ibv_dereg_mr(mr) != 0 || ibv_dealloc_pd(pd) != 0) return 5;
              return ibv_close_device(context);
            }));
  EXPECT_EQ(2u, daemon_->connections());
  EXPECT_TRUE(daemon_->WaitForHangups(1));
  ibv_port_attr port;
  EXPECT_EQ(0, ibv_query_port(context_, 1, &port));
}

TEST_F(QpTest, Fork_WhileOtherThreadsWork_ChildIsNotStuck) {
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  threads.reserve(8);
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      ibv_wc wc;
      ibv_port_attr port;
      while (!stop) {
        ibv_poll_cq(cq_, 1, &wc);
        ibv_query_port(context_, 1, &port);
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(0, InChild([&] {
                ibv_wc wc;
                if (ibv_poll_cq(cq_, 1, &wc) != 0) return 1;
                return FindDevice("rocegw0") != nullptr ? 0 : 2;
              }));
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace rocegw::testing
