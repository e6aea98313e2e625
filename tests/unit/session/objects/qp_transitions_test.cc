// SPDX-License-Identifier: Apache-2.0
// Transitions of queue pairs by programs against the table of IBTA 11.2.5.2: through the attach
// protocol, at a real worker, with allowed masks and their neighbours. A refused modify changes
// nothing, an accepted one changes what it names.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <set>
#include <string>

#include "gateway/verbs/qp_state.h"
#include "tests/support/qp/qp_transition_table.h"
#include "tests/support/session/worker_host.h"

namespace rocegw::testing {
namespace {

using verbs::QpState;
using verbs::QpType;
using enum verbs::QpAttrMask;

// Two values of each attribute that has two.
rocegw_qp_attr Attributes(bool other) {
  rocegw_qp_attr attr{};
  attr.path_mtu = other ? 2 : 3;
  attr.qkey = other ? 0x22222222 : 0x11111111;
  attr.rq_psn = other ? 0xABCDEF : 5;
  attr.sq_psn = other ? 0x123456 : 6;
  attr.dest_qpn = other ? 0x4321 : 0x1234;
  attr.access_flags = other ? 15 : 7;
  attr.av.dgid[10] = attr.av.dgid[11] = 0xFF;
  attr.av.dgid[12] = 192;
  attr.av.dgid[14] = 2;
  attr.av.dgid[15] = other ? 3 : 2;
  attr.av.flow_label = other ? 77 : 66;
  attr.av.traffic_class = other ? 8 : 4;
  attr.av.hop_limit = other ? 90 : 80;
  attr.max_rd_atomic = other ? 3 : 2;
  attr.max_dest_rd_atomic = other ? 5 : 4;
  attr.min_rnr_timer = other ? 13 : 12;
  attr.port_num = 1;
  attr.timeout = other ? 15 : 14;
  attr.retry_cnt = other ? 6 : 7;
  attr.rnr_retry = other ? 4 : 5;
  attr.service_level = other ? 1 : 0;
  attr.en_sqd_async_notify = 1;
  return attr;
}

// Returns the attributes after `from` was set with `mask`.
rocegw_qp_attr After(rocegw_qp_attr now, const rocegw_qp_attr& from, uint32_t mask, QpState state) {
  if ((mask & kAttrPathMtu) != 0) now.path_mtu = from.path_mtu;
  if ((mask & kAttrQkey) != 0) now.qkey = from.qkey;
  if ((mask & kAttrRqPsn) != 0) now.rq_psn = from.rq_psn;
  if ((mask & kAttrSqPsn) != 0) now.sq_psn = from.sq_psn;
  if ((mask & kAttrDestQpn) != 0) now.dest_qpn = from.dest_qpn;
  if ((mask & kAttrAccessFlags) != 0) now.access_flags = from.access_flags;
  if ((mask & kAttrAv) != 0) {
    now.av = from.av;
    now.service_level = from.service_level;
  }
  if ((mask & kAttrMaxQpRdAtomic) != 0) now.max_rd_atomic = from.max_rd_atomic;
  if ((mask & kAttrMaxDestRdAtomic) != 0) now.max_dest_rd_atomic = from.max_dest_rd_atomic;
  if ((mask & kAttrMinRnrTimer) != 0) now.min_rnr_timer = from.min_rnr_timer;
  if ((mask & kAttrTimeout) != 0) now.timeout = from.timeout;
  if ((mask & kAttrRetryCnt) != 0) now.retry_cnt = from.retry_cnt;
  if ((mask & kAttrRnrRetry) != 0) now.rnr_retry = from.rnr_retry;
  if ((mask & kAttrEnSqdAsyncNotify) != 0) now.en_sqd_async_notify = from.en_sqd_async_notify;
  if (state != QpState::kSqd) now.en_sqd_async_notify = 0;
  now.qp_state = now.cur_qp_state = static_cast<uint32_t>(state);
  return now;
}

// Returns the allowed masks and those that differ from one in a single attribute.
std::set<uint32_t> MasksNextTo(const TransitionRule& rule) {
  const uint32_t all = rule.must | rule.may;
  std::set<uint32_t> masks = {rule.must, all};
  for (uint32_t bit = 2; bit != 0; bit <<= 1) {
    masks.insert(rule.must ^ bit);
    masks.insert(all ^ bit);
  }
  return masks;
}

class QpTransitions : public ::testing::TestWithParam<QpType> {
 protected:
  uint32_t Create() {
    const auto qp =
        client().CreateQp(program_.pd, program_.cq, static_cast<uint32_t>(GetParam()), 4);
    EXPECT_EQ(client().error(), 0);
    return qp.handle;
  }
  void Destroy(uint32_t qp) { client().Object(ROCEGW_MSG_DESTROY_QP, qp); }

  int Modify(uint32_t qp, uint32_t mask, QpState to, QpState current, bool other) {
    rocegw_qp_attr attr = Attributes(other);
    attr.qp_state = static_cast<uint32_t>(to);
    attr.cur_qp_state = static_cast<uint32_t>(current);
    return client().Modify(qp, mask, attr);
  }

  rocegw_qp_attr Query(uint32_t qp) {
    auto request = TestClient::Request<rocegw_object_request>(ROCEGW_MSG_QUERY_QP);
    request.handle = qp;
    const auto reply = client().Call<rocegw_query_qp_reply>(request);
    EXPECT_EQ(client().error(), 0);
    return reply.attr;
  }

  // Creates a queue pair and moves it to that state with the required attributes.
  uint32_t In(QpState state) {
    const uint32_t qp = Create();
    QpState at = QpState::kReset;
    for (const QpState next : {QpState::kInit, QpState::kRtr, QpState::kRts, state}) {
      if (at == state) break;
      const uint32_t must = RuleOf(GetParam(), at, next)->must;
      EXPECT_EQ(Modify(qp, kAttrState | must, next, at, false), 0);
      at = next;
    }
    EXPECT_EQ(Query(qp).qp_state, static_cast<uint32_t>(state));
    return qp;
  }

  // Tries one modify on a new queue pair.
  void Try(QpState from, QpState to, uint32_t mask, QpState claimed, bool allowed) {
    SCOPED_TRACE(::testing::Message() << "mask 0x" << std::hex << mask);
    const uint32_t qp = In(from);
    const rocegw_qp_attr before = Query(qp);
    const int error = Modify(qp, mask, to, claimed, true);
    const rocegw_qp_attr after = Query(qp);
    EXPECT_EQ(error, allowed ? 0 : EINVAL);
    rocegw_qp_attr expected = before;
    if (allowed && to == QpState::kReset) {
      const uint32_t fresh = Create();
      expected = Query(fresh);
      Destroy(fresh);
    } else if (allowed) {
      expected = After(before, Attributes(true), mask, to);
    }
    EXPECT_EQ(std::memcmp(&after, &expected, sizeof after), 0)
        << (allowed ? "not as given" : "changed all the same");
    Destroy(qp);
    ++tried_;
  }

  void TryAll(QpState from, QpState to) {
    const auto rule = RuleOf(GetParam(), from, to);
    if (!rule) {
      // With the masks by which this state is reached from others, and with none.
      std::set<uint32_t> masks = {0};
      for (const QpState elsewhere : kQpStates) {
        if (const auto other = RuleOf(GetParam(), elsewhere, to)) masks.insert(other->must);
      }
      for (const uint32_t mask : masks) Try(from, to, kAttrState | mask, from, false);
      return;
    }
    for (const uint32_t mask : MasksNextTo(*rule)) {
      const bool allowed =
          (mask & rule->must) == rule->must && (mask & ~(rule->must | rule->may)) == 0;
      Try(from, to, kAttrState | mask, from, allowed);
      // The state without the current one.
      if (from == to && from != QpState::kReset) Try(from, to, mask, from, allowed);
    }
    if ((rule->may & kAttrCurState) == 0) return;
    for (const QpState claimed : kQpStates) {
      const bool true_one = claimed == from;
      Try(from, to, kAttrState | kAttrCurState | rule->must, claimed, true_one);
    }
  }

  TestClient& client() { return *program_.client; }

  // Without a rate limit for requests.
  static session::Options Unhurried() {
    session::Options options;
    options.session.request_burst = uint32_t{1} << 20;
    return options;
  }
  WorkerHost host_{1, Unhurried(), false};
  WorkerHost::Program program_ = host_.Begin(session::kDefaultPool);
  size_t tried_ = 0;
};

TEST_P(QpTransitions, AsTheTableSays_AndRefusedOnesChangeNothing) {
  for (const QpState from : kQpStates) {
    if (from == QpState::kSqe) continue;  // not reachable
    for (const QpState to : kQpStates) {
      SCOPED_TRACE(std::string(verbs::StateName(from)) + " to " + verbs::StateName(to));
      TryAll(from, to);
    }
  }
  EXPECT_GT(tried_, 1000u);
  EXPECT_EQ(host_.log, std::vector<std::string>());
}

INSTANTIATE_TEST_SUITE_P(Types, QpTransitions,
                         ::testing::Values(QpType::kRc, QpType::kUc, QpType::kUd, QpType::kXrcSend),
                         [](const auto& type) {
                           return type.param == QpType::kRc   ? "Rc"
                                  : type.param == QpType::kUc ? "Uc"
                                  : type.param == QpType::kUd ? "Ud"
                                                              : "XrcSend";
                         });

}  // namespace
}  // namespace rocegw::testing
