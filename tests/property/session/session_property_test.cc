// SPDX-License-Identifier: Apache-2.0
// Random sequences of verbs commands from several clients, compared with a model of each client's
// objects: every reply is the model's, workers hold exactly the model's objects, and nothing
// remains after a client closes at any point.
#include <gtest/gtest.h>

#include <cerrno>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "tests/support/random.h"
#include "tests/support/session/session_host.h"

namespace rocegw::testing {
namespace {

// Expected state of one client.
struct Model {
  struct Pd {
    uint32_t context, users;
  };
  struct Channel {
    uint32_t context, users;
  };
  struct Cq {
    uint32_t context, channel, users;
  };
  struct Qp {
    uint32_t context, pd, send_cq, recv_cq, qpn, worker;
  };
  struct Mr {
    uint32_t context, pd, key;
    uint64_t length;
  };
  std::set<uint32_t> contexts;
  std::map<uint32_t, Pd> pds;
  std::map<uint32_t, Channel> channels;
  std::map<uint32_t, Cq> cqs;
  std::map<uint32_t, Qp> qps;
  std::map<uint32_t, Mr> mrs;
  std::map<uint32_t, Mr> mws;  // by the name in their keys

  template <typename T>
  static void EraseOf(std::map<uint32_t, T>& objects, uint32_t context) {
    std::erase_if(objects, [&](const auto& entry) { return entry.second.context == context; });
  }
  void CloseContext(uint32_t context) {
    contexts.erase(context);
    EraseOf(pds, context);
    EraseOf(channels, context);
    EraseOf(cqs, context);
    EraseOf(qps, context);
    EraseOf(mrs, context);
    EraseOf(mws, context);
  }
};

struct Player {
  std::unique_ptr<TestClient> client;
  uint32_t session = 0;
  Model model;
};

class SessionProperty : public ::testing::Test {
 protected:
  static session::Options Tight() {
    session::Options options;
    options.limits.qps = 20;
    options.limits.mrs = 25;
    options.limits.cqs = 15;
    options.limits.pds = 12;
    options.limits.registered_bytes = 100000;
    return options;
  }

  // Returns mostly an existing handle, else one that does not exist.
  template <typename Objects>
  uint32_t Pick(const Objects& objects) {
    if (objects.empty() || random.Below(12) == 0)
      return static_cast<uint32_t>(random.Below(2) == 0 ? 0 : 5000 + random.Below(9));
    auto it = objects.begin();
    std::advance(it, random.Below(objects.size()));
    if constexpr (requires { it->first; }) {
      return it->first;
    } else {
      return *it;
    }
  }

  template <typename F>
  uint64_t Sum(F&& f) {
    uint64_t sum = 0;
    for (const auto& [id, player] : players) sum += f(player.model);
    return sum;
  }

  void Join() {
    Player player;
    player.client = std::make_unique<TestClient>(host);
    ASSERT_TRUE(player.client->Hello());
    players[next_player++] = std::move(player);
  }

  // Sends a destroy request and checks its reply.
  template <typename T>
  void Destroy(Player& player, uint32_t type, std::map<uint32_t, T>& objects, uint32_t handle,
               bool busy) {
    player.client->Object(type, handle);
    const int expected = !objects.contains(handle) ? EINVAL : busy ? EBUSY : 0;
    ASSERT_EQ(player.client->error(), expected) << "type " << type << " handle " << handle;
    if (expected == 0) objects.erase(handle);
  }

  void Step(Player& player);
  void CompareWithWorkers();

  Random random{TestSeed(31)};
  SessionHost host{3, Tight(), 8};
  std::map<int, Player> players;
  int next_player = 0;
};

void SessionProperty::Step(Player& player) {
  TestClient& client = *player.client;
  Model& m = player.model;
  switch (random.Below(18)) {
    case 0: {
      if (m.contexts.size() > 3) break;
      const uint32_t context = client.OpenContext();
      ASSERT_EQ(client.error(), 0);
      ASSERT_TRUE(m.contexts.insert(context).second);
      break;
    }
    case 1: {
      if (random.Below(6) != 0) break;
      const uint32_t context = Pick(m.contexts);
      client.Object(ROCEGW_MSG_CLOSE_CONTEXT, context);
      ASSERT_EQ(client.error(), m.contexts.contains(context) ? 0 : EINVAL);
      m.CloseContext(context);
      break;
    }
    case 2:
    case 3: {
      const uint32_t context = Pick(m.contexts);
      const bool room = Sum([](const Model& o) { return o.pds.size(); }) < 12;
      const uint32_t pd = client.AllocPd(context);
      ASSERT_EQ(client.error(), !m.contexts.contains(context) ? EINVAL : room ? 0 : ENOMEM);
      if (client.error() == 0) m.pds[pd] = {context, 0};
      break;
    }
    case 4: {
      const uint32_t context = Pick(m.contexts);
      const uint32_t channel = client.CreateChannel(context);
      ASSERT_EQ(client.error(), m.contexts.contains(context) ? 0 : EINVAL);
      if (client.error() == 0) m.channels[channel] = {context, 0};
      break;
    }
    case 5:
    case 6: {
      const uint32_t context = Pick(m.contexts);
      const uint32_t channel = random.Coin() ? 0 : Pick(m.channels);
      const bool fits = m.contexts.contains(context) &&
                        (channel == 0 ||
                         (m.channels.contains(channel) && m.channels[channel].context == context));
      const bool room = Sum([](const Model& o) { return o.cqs.size(); }) < 15;
      const auto cq =
          client.CreateCq(context, static_cast<uint32_t>(random.Between(1, 300)), channel);
      ASSERT_EQ(client.error(), !fits ? EINVAL : room ? 0 : ENOMEM);
      if (client.error() != 0) break;
      m.cqs[cq.handle] = {context, channel, 0};
      if (channel != 0) ++m.channels[channel].users;
      break;
    }
    case 7:
    case 8: {
      auto create = TestClient::Request<rocegw_create_qp>(ROCEGW_MSG_CREATE_QP);
      create.pd = Pick(m.pds);
      create.send_cq = Pick(m.cqs);
      create.recv_cq = random.Coin() ? create.send_cq : Pick(m.cqs);
      create.type = random.Coin() ? ROCEGW_QPT_RC : ROCEGW_QPT_UD;
      create.max_send_wr = static_cast<uint32_t>(random.Below(600));
      create.max_recv_wr = static_cast<uint32_t>(random.Below(600));
      create.max_send_sge = static_cast<uint32_t>(random.Below(18));
      const bool fits = m.pds.contains(create.pd) && m.cqs.contains(create.send_cq) &&
                        m.cqs.contains(create.recv_cq) &&
                        m.cqs[create.send_cq].context == m.pds[create.pd].context &&
                        m.cqs[create.recv_cq].context == m.pds[create.pd].context &&
                        create.max_send_sge <= 16;
      const bool room = Sum([](const Model& o) { return o.qps.size(); }) < 20;
      const auto qp = client.Call<rocegw_qp_reply>(create);
      ASSERT_EQ(client.error(), !fits ? EINVAL : room ? 0 : ENOMEM);
      if (client.error() != 0) break;
      for (const auto& [id, other] : players) {
        for (const auto& [handle, known] : other.model.qps) ASSERT_NE(known.qpn, qp.qpn);
      }
      m.qps[qp.handle] = {m.pds[create.pd].context, create.pd, create.send_cq,
                          create.recv_cq,           qp.qpn,    qp.worker};
      ++m.pds[create.pd].users;
      ++m.cqs[create.send_cq].users;
      ++m.cqs[create.recv_cq].users;
      break;
    }
    case 9:
    case 10: {
      const uint32_t pd = Pick(m.pds);
      const uint64_t length = random.Between(1, 9000);
      const uint64_t used = Sum([](const Model& o) {
        uint64_t bytes = 0;
        for (const auto& [handle, mr] : o.mrs) bytes += mr.length;
        return bytes;
      });
      const bool room = Sum([](const Model& o) { return o.mrs.size() + o.mws.size(); }) < 25 &&
                        used + length <= 100000;
      const auto mr = client.RegMr(pd, 0x10000, length);
      ASSERT_EQ(client.error(), !m.pds.contains(pd) ? EINVAL : room ? 0 : ENOMEM);
      if (client.error() != 0) break;
      for (const auto& [id, other] : players) {
        for (const auto& [handle, known] : other.model.mrs) ASSERT_NE(known.key, mr.rkey);
      }
      m.mrs[mr.handle] = {m.pds[pd].context, pd, mr.rkey, length};
      ++m.pds[pd].users;
      break;
    }
    case 16: {
      auto alloc = TestClient::Request<rocegw_alloc_mw>(ROCEGW_MSG_ALLOC_MW);
      alloc.pd = Pick(m.pds);
      alloc.type = random.Coin() ? 1 : 2;
      const bool room = Sum([](const Model& o) { return o.mrs.size() + o.mws.size(); }) < 25;
      const auto mw = client.Call<rocegw_mw_reply>(alloc);
      ASSERT_EQ(client.error(), !m.pds.contains(alloc.pd) ? EINVAL : room ? 0 : ENOMEM);
      if (client.error() != 0) break;
      m.mws[mw.handle] = {m.pds[alloc.pd].context, alloc.pd, mw.rkey >> 8, 0};
      ++m.pds[alloc.pd].users;
      break;
    }
    case 17: {
      const uint32_t mw = Pick(m.mws);
      if (m.mws.contains(mw)) --m.pds[m.mws[mw].pd].users;
      Destroy(player, ROCEGW_MSG_DEALLOC_MW, m.mws, mw, false);
      break;
    }
    case 11: {
      const uint32_t pd = Pick(m.pds);
      Destroy(player, ROCEGW_MSG_DEALLOC_PD, m.pds, pd, m.pds.contains(pd) && m.pds[pd].users != 0);
      break;
    }
    case 12: {
      const uint32_t channel = Pick(m.channels);
      Destroy(player, ROCEGW_MSG_DESTROY_CHANNEL, m.channels, channel,
              m.channels.contains(channel) && m.channels[channel].users != 0);
      break;
    }
    case 13: {
      const uint32_t cq = Pick(m.cqs);
      const bool there = m.cqs.contains(cq);
      const bool busy = there && m.cqs[cq].users != 0;
      if (there && !busy && m.cqs[cq].channel != 0) --m.channels[m.cqs[cq].channel].users;
      Destroy(player, ROCEGW_MSG_DESTROY_CQ, m.cqs, cq, busy);
      break;
    }
    case 14: {
      const uint32_t qp = Pick(m.qps);
      if (m.qps.contains(qp)) {
        const Model::Qp& gone = m.qps[qp];
        --m.pds[gone.pd].users;
        --m.cqs[gone.send_cq].users;
        --m.cqs[gone.recv_cq].users;
      }
      Destroy(player, ROCEGW_MSG_DESTROY_QP, m.qps, qp, false);
      break;
    }
    default: {
      const uint32_t mr = Pick(m.mrs);
      if (m.mrs.contains(mr)) --m.pds[m.mrs[mr].pd].users;
      Destroy(player, ROCEGW_MSG_DEREG_MR, m.mrs, mr, false);
      break;
    }
  }
}

void SessionProperty::CompareWithWorkers() {
  ASSERT_EQ(host.BrokenRules(), std::vector<std::string>());
  for (size_t w = 0; w < host.workers.size(); ++w) {
    std::set<uint32_t> qps;
    std::set<uint32_t> keys;
    std::set<uint32_t> windows;
    size_t cqs = 0;
    for (const auto& [id, session] : host.workers[w]->sessions) {
      cqs += session.cqs.size();
      for (const auto& [qpn, qp] : session.qps) qps.insert(qpn);
      for (const auto& [key, mr] : session.mrs) keys.insert(key);
      for (const auto& [name, mw] : session.windows) windows.insert(name);
    }
    std::set<uint32_t> expected_qps;
    std::set<uint32_t> expected_keys;
    std::set<uint32_t> expected_windows;
    size_t expected_cqs = 0;
    for (const auto& [id, player] : players) {
      expected_cqs += player.model.cqs.size();
      for (const auto& [handle, qp] : player.model.qps) {
        if (qp.worker == w) expected_qps.insert(qp.qpn);
      }
      for (const auto& [handle, mr] : player.model.mrs) expected_keys.insert(mr.key);
      for (const auto& [handle, mw] : player.model.mws) expected_windows.insert(mw.key);
    }
    ASSERT_EQ(qps, expected_qps);
    ASSERT_EQ(keys, expected_keys);
    ASSERT_EQ(windows, expected_windows);
    ASSERT_EQ(cqs, expected_cqs);
  }
}

TEST_F(SessionProperty, RandomCommands_AnswersAndWorkersAreTheModels) {
  for (int step = 0; step < 6000; ++step) {
    if (players.empty() || (players.size() < 4 && random.Below(50) == 0)) Join();
    auto it = players.begin();
    std::advance(it, random.Below(players.size()));
    if (random.Below(150) == 0) {
      players.erase(it);
      host.Settle();
    } else {
      Step(it->second);
    }
    if (HasFatalFailure()) FAIL() << "step " << step;
    if (step % 20 == 0) {
      CompareWithWorkers();
      if (HasFatalFailure()) FAIL() << "step " << step;
    }
  }
  players.clear();
  host.Settle();
  CompareWithWorkers();
  EXPECT_EQ(host.LinkedObjects(), 0u);
  for (size_t i = 0; i < static_cast<size_t>(session::Resource::kCount); ++i) {
    EXPECT_EQ(host.server->services().pools.gateway().used(static_cast<session::Resource>(i)), 0u)
        << i;
  }
}

// The same with workers that sometimes refuse: a failed command leaves nothing behind.
TEST_F(SessionProperty, WorkersRefuse_NothingOfACommandThatFailedRemains) {
  Join();
  Player& player = players.begin()->second;
  TestClient& client = *player.client;
  const uint32_t context = client.OpenContext();
  const uint32_t pd = client.AllocPd(context);
  const auto kept = client.CreateCq(context);
  ASSERT_EQ(client.error(), 0);
  auto receives = TestClient::Request<rocegw_create_srq>(ROCEGW_MSG_CREATE_SRQ);
  receives.pd = pd;
  receives.max_wr = receives.max_sge = 1;
  const uint32_t srq = client.Call<rocegw_srq_reply>(receives).handle;
  ASSERT_EQ(client.error(), 0);
  for (int step = 0; step < 1000; ++step) {
    const size_t before = host.LinkedObjects();
    auto& worker = *host.workers[random.Below(3)];
    worker.fail_next = EIO;
    uint32_t qp = 0;
    switch (random.Below(4)) {
      case 0:
        client.RegMr(pd, 4096, 64);
        break;
      case 3: {
        auto alloc = TestClient::Request<rocegw_alloc_mw>(ROCEGW_MSG_ALLOC_MW);
        alloc.pd = pd;
        alloc.type = 2;
        client.Call<rocegw_mw_reply>(alloc);
        break;
      }
      case 1:
        client.CreateCq(context);
        break;
      default: {
        // A queue pair with a shared receive queue needs a worker's reply.
        auto create = TestClient::QpRequest(pd, kept.handle);
        create.srq = srq;
        qp = client.Call<rocegw_qp_reply>(create).handle;
        break;
      }
    }
    if (worker.fail_next == 0) {
      ASSERT_EQ(client.error(), EIO);
      ASSERT_EQ(host.LinkedObjects(), before);
    } else {
      // The queue pair went to another worker.
      worker.fail_next = 0;
      ASSERT_EQ(client.error(), 0);
      client.Object(ROCEGW_MSG_DESTROY_QP, qp);
      ASSERT_EQ(client.error(), 0);
    }
  }
}

}  // namespace
}  // namespace rocegw::testing
