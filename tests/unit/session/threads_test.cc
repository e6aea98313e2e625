// SPDX-License-Identifier: Apache-2.0
// Everything with real threads: control loop, workers, clients that come and go, and concurrent
// snapshots.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "tests/support/session/running_session.h"

namespace rocegw::testing {
namespace {

class Threads : public ::testing::TestWithParam<bool> {
 protected:
  UniqueFd Connect() const {
    UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, running_host.path().data(), running_host.path().size());
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return socket;
  }
  static session::Options Trust(bool trusted) {
    session::Options options;
    options.trusted = trusted;
    return options;
  }

  SessionHost host{2, Trust(GetParam()), 64};
  RunningSession running_host{host};
};

TEST_P(Threads, ClientsComeAndGo_SnapshotsInBetween) {
  constexpr int kClients = 3;
  constexpr int kLives = 15;
  std::atomic<int> running{kClients};
  std::vector<std::thread> clients;
  for (int c = 0; c < kClients; ++c) {
    clients.emplace_back([&] {
      for (int life = 0; life < kLives; ++life) {
        TestClient client(host, Connect());
        client.HostHasThreads();
        ASSERT_TRUE(client.Hello());
        const uint32_t context = client.OpenContext();
        const uint32_t pd = client.AllocPd(context);
        const uint32_t cq = client.CreateCq(context).handle;
        for (int i = 0; i < 5; ++i) {
          const auto qp = client.CreateQp(pd, cq);
          ASSERT_EQ(client.error(), 0);
          const auto mr = client.RegMr(pd, 4096, 64);
          ASSERT_EQ(client.error(), 0);
          if (i % 2 == 0) client.Object(ROCEGW_MSG_DESTROY_QP, qp.handle);
          if (i % 3 == 0) client.Object(ROCEGW_MSG_DEREG_MR, mr.handle);
          ASSERT_EQ(client.error(), 0);
        }
      }
      --running;
    });
  }
  std::atomic<int> snapshots{0};
  int asked = 0;
  while (running.load() != 0) {
    ++asked;
    host.server->Snapshot({true, true, true}, [&](const session::StateSnapshot& snapshot) {
      EXPECT_LE(snapshot.sessions.size(), 100u);
      ++snapshots;
    });
    while (snapshots.load() != asked) ::sched_yield();
  }
  for (std::thread& client : clients) client.join();
  EXPECT_GT(asked, 0);
}

INSTANTIATE_TEST_SUITE_P(Pools, Threads, ::testing::Bool(), [](const auto& trusted) {
  return trusted.param ? "Trusted" : "Untrusted";
});

}  // namespace
}  // namespace rocegw::testing
