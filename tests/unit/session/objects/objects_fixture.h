// SPDX-License-Identifier: Apache-2.0
// A program with a context and a protection domain, on two fake workers; requests of a correct
// library, and refusals.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gateway/verbs/types.h"
#include "tests/support/session/session_host.h"

namespace rocegw::testing {

class Objects : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(client.Hello());
    context = client.OpenContext();
    ASSERT_NE(context, 0u);
    pd = client.AllocPd(context);
    ASSERT_NE(pd, 0u);
  }
  void TearDown() override { EXPECT_EQ(host.BrokenRules(), std::vector<std::string>()); }

  uint32_t Cq(uint32_t entries = 16) { return client.CreateCq(context, entries).handle; }
  FakeWorker::Session& On(size_t worker) { return host.workers[worker]->sessions.begin()->second; }

  rocegw_qp_attr ToRtr() {
    rocegw_qp_attr attr{};
    attr.qp_state = static_cast<uint32_t>(verbs::QpState::kRtr);
    attr.path_mtu = 3;
    attr.dest_qpn = 0x123456;
    attr.rq_psn = 5;
    attr.max_dest_rd_atomic = 16;
    attr.min_rnr_timer = 12;
    attr.av.hop_limit = 1;
    attr.av.dgid[10] = attr.av.dgid[11] = 0xFF;
    attr.av.dgid[12] = 192;
    attr.av.dgid[14] = 2;
    attr.av.dgid[15] = 9;
    return attr;
  }
  static constexpr uint32_t kInitMask =
      verbs::kAttrState | verbs::kAttrPkeyIndex | verbs::kAttrPort | verbs::kAttrAccessFlags;
  static constexpr uint32_t kRtrMask = verbs::kAttrState | verbs::kAttrAv | verbs::kAttrPathMtu |
                                       verbs::kAttrDestQpn | verbs::kAttrRqPsn |
                                       verbs::kAttrMaxDestRdAtomic | verbs::kAttrMinRnrTimer;
  int ToInit(uint32_t qp) {
    rocegw_qp_attr attr{};
    attr.qp_state = static_cast<uint32_t>(verbs::QpState::kInit);
    attr.port_num = 1;
    return client.Modify(qp, kInitMask, attr);
  }

  SessionHost host;
  TestClient client{host};
  uint32_t context = 0;
  uint32_t pd = 0;
};

inline rocegw_rereg_mr Rereg(uint32_t mr, uint32_t pd, uint64_t address, uint64_t length,
                             uint32_t access) {
  auto rereg = TestClient::Request<rocegw_rereg_mr>(ROCEGW_MSG_REREG_MR);
  rereg.mr = mr;
  rereg.pd = pd;
  rereg.address = rereg.iova = address;
  rereg.length = length;
  rereg.access = access;
  return rereg;
}

}  // namespace rocegw::testing
