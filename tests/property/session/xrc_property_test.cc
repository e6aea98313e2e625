// SPDX-License-Identifier: Apache-2.0
// Programs that share XRC domains at random, closing, dying and returning, compared with a model of
// open objects, which determines every errno and the state of the workers.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <cerrno>
#include <map>
#include <memory>
#include <set>

#include "tests/support/random.h"
#include "tests/support/session/session_host.h"

namespace rocegw::testing::xrc_domains {
namespace {

struct Domain {
  std::map<uint32_t, uint32_t> targets;  // QPN to how often it is open
};

struct OpenDomain {
  std::shared_ptr<Domain> domain;
  uint32_t users = 0;
};

struct Handle {
  uint32_t xrcd;
  uint32_t qpn;
};

// Program with its objects.
struct Sharer {
  explicit Sharer(SessionHost& host) : client(std::make_unique<TestClient>(host)) {
    EXPECT_TRUE(client->Hello());
    context = client->OpenContext();
    pd = client->AllocPd(context);
    cq = client->CreateCq(context).handle;
  }
  std::unique_ptr<TestClient> client;
  uint32_t context, pd, cq;
  std::map<uint32_t, OpenDomain> xrcds;
  std::map<uint32_t, Handle> qps;
  std::map<uint32_t, uint32_t> srqs;  // to their domain's handle
};

class XrcProperty : public ::testing::Test {
 protected:
  static constexpr size_t kFiles = 3;

  template <typename T>
  uint32_t Pick(const std::map<uint32_t, T>& from) {
    if (from.empty() || random.Below(20) == 0) return 4000;
    return std::next(from.begin(), static_cast<ptrdiff_t>(random.Below(from.size())))->first;
  }
  std::shared_ptr<Domain> DomainOf(size_t file) { return domains[file].lock(); }

  void Open(Sharer& s) {
    const size_t file = random.Below(kFiles);
    auto request = TestClient::Request<rocegw_open_xrcd>(ROCEGW_MSG_OPEN_XRCD);
    request.context = s.context;
    request.flags = static_cast<uint32_t>(random.Below(4));
    request.named = 1;
    const bool create = (request.flags & ROCEGW_XRCD_CREATE) != 0;
    const bool exclusive = (request.flags & ROCEGW_XRCD_EXCLUSIVE) != 0;
    std::shared_ptr<Domain> domain = DomainOf(file);
    const int expected = domain != nullptr ? exclusive ? EINVAL : 0 : create ? 0 : EAGAIN;
    const auto reply = s.client->Call<rocegw_object_reply>(request, files[file].get());
    ASSERT_EQ(s.client->error(), expected);
    if (expected != 0) return;
    if (domain == nullptr) domains[file] = domain = std::make_shared<Domain>();
    s.xrcds[reply.handle] = {domain, 0};
  }
  void Close(Sharer& s) {
    const uint32_t handle = Pick(s.xrcds);
    const auto known = s.xrcds.find(handle);
    s.client->Object(ROCEGW_MSG_CLOSE_XRCD, handle);
    ASSERT_EQ(s.client->error(), known == s.xrcds.end() ? EINVAL : known->second.users ? EBUSY : 0);
    if (s.client->error() == 0) s.xrcds.erase(known);
  }
  void AddQp(Sharer& s, bool opens) {
    const uint32_t xrcd = Pick(s.xrcds);
    const auto known = s.xrcds.find(xrcd);
    uint32_t wanted = 0x3FFFF;
    if (opens && known != s.xrcds.end()) wanted = Pick(known->second.domain->targets);
    rocegw_qp_reply reply;
    if (opens) {
      auto request = TestClient::Request<rocegw_open_qp>(ROCEGW_MSG_OPEN_QP);
      request.xrcd = xrcd;
      request.qpn = wanted;
      reply = s.client->Call<rocegw_qp_reply>(request);
    } else {
      auto request = TestClient::Request<rocegw_create_qp>(ROCEGW_MSG_CREATE_QP);
      request.type = ROCEGW_QPT_XRC_RECV;
      request.xrcd = xrcd;
      reply = s.client->Call<rocegw_qp_reply>(request);
    }
    const bool possible =
        known != s.xrcds.end() && (!opens || known->second.domain->targets.contains(wanted));
    ASSERT_EQ(s.client->error(), possible ? 0 : EINVAL);
    if (!possible) return;
    ++known->second.users;
    ++known->second.domain->targets[reply.qpn];
    s.qps[reply.handle] = {xrcd, reply.qpn};
  }
  void ForgetQp(Sharer& s, const Handle& qp) {
    OpenDomain& xrcd = s.xrcds.at(qp.xrcd);
    --xrcd.users;
    if (--xrcd.domain->targets.at(qp.qpn) == 0) xrcd.domain->targets.erase(qp.qpn);
  }
  void RemoveQp(Sharer& s) {
    const uint32_t handle = Pick(s.qps);
    const auto known = s.qps.find(handle);
    s.client->Object(ROCEGW_MSG_DESTROY_QP, handle);
    ASSERT_EQ(s.client->error(), known == s.qps.end() ? EINVAL : 0);
    if (known == s.qps.end()) return;
    ForgetQp(s, known->second);
    s.qps.erase(known);
  }
  void AddSrq(Sharer& s) {
    auto request = TestClient::Request<rocegw_create_srq>(ROCEGW_MSG_CREATE_SRQ);
    request.pd = s.pd;
    request.cq = s.cq;
    request.max_wr = 4;
    request.max_sge = 1;
    request.xrcd = Pick(s.xrcds);
    const auto known = s.xrcds.find(request.xrcd);
    const auto reply = s.client->Call<rocegw_srq_reply>(request);
    ASSERT_EQ(s.client->error(), known == s.xrcds.end() ? EINVAL : 0);
    if (known == s.xrcds.end()) return;
    ++known->second.users;
    s.srqs[reply.handle] = request.xrcd;
  }
  void RemoveSrq(Sharer& s) {
    const uint32_t handle = Pick(s.srqs);
    const auto known = s.srqs.find(handle);
    s.client->Object(ROCEGW_MSG_DESTROY_SRQ, handle);
    ASSERT_EQ(s.client->error(), known == s.srqs.end() ? EINVAL : 0);
    if (known == s.srqs.end()) return;
    --s.xrcds.at(known->second).users;
    s.srqs.erase(known);
  }
  // kill -9; a new program takes its place.
  void Die(Sharer& s) {
    for (const auto& [handle, qp] : s.qps) ForgetQp(s, qp);
    s.client->Disconnect();
    host.Settle();
    s = Sharer(host);
  }
  void Compare() {
    std::multiset<uint32_t> expected;
    std::set<const Domain*> open;
    size_t srqs = 0;
    for (const auto& s : sharers) {
      srqs += s->srqs.size();
      for (const auto& [handle, xrcd] : s->xrcds) open.insert(xrcd.domain.get());
    }
    for (const Domain* const domain : open)
      for (const auto& [qpn, count] : domain->targets) expected.insert(qpn);
    std::multiset<uint32_t> linked;
    size_t linked_domains = 0;
    size_t linked_srqs = 0;
    for (const auto& worker : host.workers) {
      for (const auto& [id, session] : worker->sessions) {
        linked_domains += session.link.xrc_domain;
        linked_srqs += session.srqs.size();
        for (const auto& [qpn, qp] : session.qps) linked.insert(qpn);
      }
    }
    ASSERT_EQ(linked_domains, open.size());
    ASSERT_EQ(linked_srqs, srqs);
    ASSERT_EQ(linked, expected);
  }

  SessionHost host;
  Random random{TestSeed(92)};
  std::array<UniqueFd, kFiles> files;
  std::array<std::weak_ptr<Domain>, kFiles> domains;
  std::vector<std::unique_ptr<Sharer>> sharers;
};

TEST_F(XrcProperty, WhoHasWhatOpen_DecidesEverything) {
  for (UniqueFd& file : files) file = UniqueFd(::memfd_create("xrc", MFD_CLOEXEC));
  for (int i = 0; i < 3; ++i) sharers.push_back(std::make_unique<Sharer>(host));
  for (int step = 0; step < 4000; ++step) {
    SCOPED_TRACE(step);
    Sharer& s = *sharers[random.Below(sharers.size())];
    switch (random.Below(13)) {
      case 0:
      case 1:
        Open(s);
        break;
      case 2:
        Close(s);
        break;
      case 3:
      case 4:
        AddQp(s, false);
        break;
      case 5:
      case 6:
        AddQp(s, true);
        break;
      case 7:
      case 8:
        RemoveQp(s);
        break;
      case 9:
        AddSrq(s);
        break;
      case 10:
      case 11:
        RemoveSrq(s);
        break;
      case 12:
        if (random.Below(8) == 0) Die(s);
        break;
    }
    if (HasFatalFailure()) return;
    if (step % 16 == 0) Compare();
    if (HasFatalFailure()) return;
  }
  for (const auto& s : sharers) s->client->Disconnect();
  host.Settle();
  EXPECT_EQ(host.LinkedObjects(), 0u);
  EXPECT_EQ(host.BrokenRules(), std::vector<std::string>());
}

}  // namespace
}  // namespace rocegw::testing::xrc_domains
