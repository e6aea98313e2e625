// SPDX-License-Identifier: Apache-2.0
// Fixture whose process is attached to a scripted daemon, with a context and a protection domain.
#pragma once

#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <cstdlib>
#include <cstring>

#include "tests/unit/client/daemon/fake_daemon.h"

namespace rocegw::testing {

class AttachedTest : public ::testing::Test {
 protected:
  explicit AttachedTest(const FakeOptions& options = {}) : daemon_(options) {}
  void SetUp() override {
    setenv("ROCEGW_SOCKET", daemon_.socket_path().c_str(), 1);
    int count = 0;
    ibv_device** const list = ibv_get_device_list(&count);
    ASSERT_NE(nullptr, list);
    for (int i = 0; i < count; ++i)
      if (strcmp(ibv_get_device_name(list[i]), "rocegw0") == 0) context_ = ibv_open_device(list[i]);
    ibv_free_device_list(list);
    ASSERT_NE(nullptr, context_);
    pd_ = ibv_alloc_pd(context_);
    ASSERT_NE(nullptr, pd_);
  }
  void TearDown() override {
    EXPECT_EQ(0, ibv_dealloc_pd(pd_));
    EXPECT_EQ(0, ibv_close_device(context_));
    unsetenv("ROCEGW_SOCKET");
  }

  FakeDaemon daemon_;
  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
};

}  // namespace rocegw::testing
