// SPDX-License-Identifier: Apache-2.0
// The library's verbs against a scripted daemon: its requests, its use of the answers, and its
// behaviour when the daemon refuses or dies.
#pragma once

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

#include "tests/unit/client/daemon/fake_daemon.h"

namespace rocegw::testing {

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

// Context with everything that one connected QP needs.
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

}  // namespace rocegw::testing
