// SPDX-License-Identifier: Apache-2.0
// A program of a benchmark that shares a gateway with another one, until SIGTERM.
//
//   neighbour serve GID_INDEX PORT            the other end, of one client
//   neighbour VICTIM GID_INDEX PORT ADDRESS   a program that behaves (kVictims);
//                                             set_up_us=T of attaching and connecting both ends,
//                                             then messages=N seconds=S p50_us=A p99_us=B
//   neighbour KIND GID_INDEX PORT ADDRESS     noise (noises.cc)
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/bench/neighbours/talk.h"

namespace rocegw::bench {
namespace {

struct Victim {
  const char* name;
  ibv_wr_opcode opcode;
  size_t queue_pairs;
  uint32_t under_way;  // requests of a queue pair
  uint32_t length;
};
constexpr Victim kVictims[] = {
    {"victim", IBV_WR_RDMA_WRITE, 4, 8, 4096},
    {"victim_pings", IBV_WR_RDMA_WRITE, 1, 1, 64},
    {"victim_reads", IBV_WR_RDMA_READ, 4, 4, 4096},
    {"victim_atomics", IBV_WR_ATOMIC_FETCH_AND_ADD, 4, 2, 8},
    {"victim_bulk", IBV_WR_RDMA_WRITE, 2, 4, 256 << 10},
    {"victim_many_qps", IBV_WR_RDMA_WRITE, 64, 1, 1024},
};

std::atomic<bool> ended{false};

const Victim* FindVictim(const char* name) {
  const auto found = std::ranges::find_if(
      kVictims, [name](const Victim& one) { return std::strcmp(one.name, name) == 0; });
  return found == std::end(kVictims) ? nullptr : found;
}

void BehaveWell(const Victim& victim, const Server& server) {
  const Clock::time_point began = Clock::now();
  const Talk talk(server, victim.queue_pairs, victim.under_way, std::max(victim.length, 4096u));
  const std::chrono::duration<double, std::micro> set_up = Clock::now() - began;
  std::printf("set_up_us=%.0f\n", set_up.count());
  std::fflush(stdout);
  std::vector<Clock::time_point> posted(victim.queue_pairs * victim.under_way);
  std::vector<float> took_us;
  const auto post = [&](uint64_t id) {
    ibv_send_wr request = talk.Request(victim.opcode, victim.length);
    if (victim.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
      const auto target = request.wr.rdma;
      request.wr.atomic = {target.remote_addr, 1, 0, target.rkey};
    }
    request.wr_id = id;
    posted[id] = Clock::now();
    talk.Post(id / victim.under_way, request, talk.Piece(victim.length));
  };
  const Clock::time_point from = Clock::now();
  for (uint64_t id = 0; id < posted.size(); ++id) post(id);
  while (!Ended()) {
    talk.Wait([&](const ibv_wc& wc) {
      if (wc.status != IBV_WC_SUCCESS) Fail(ibv_wc_status_str(wc.status));
      const std::chrono::duration<float, std::micro> took = Clock::now() - posted[wc.wr_id];
      took_us.push_back(took.count());
      post(wc.wr_id);
    });
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - from).count();
  if (took_us.empty()) Fail("nothing completed");
  std::ranges::sort(took_us);
  const auto at = [&](double share) {
    return took_us[static_cast<size_t>(share * static_cast<double>(took_us.size() - 1))];
  };
  std::printf("messages=%zu seconds=%.3f p50_us=%.1f p99_us=%.1f\n", took_us.size(), seconds,
              at(0.5), at(0.99));
}

void Serve(uint16_t port, int gid_index) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(port);
  if (bind(listener, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 ||
      listen(listener, 1) != 0) {
    Fail("bind");
  }
  std::printf("serving\n");
  std::fflush(stdout);
  const int client = accept(listener, nullptr, nullptr);
  if (client < 0) Fail("accept");
  Talk::Serve(client, gid_index);
}

}  // namespace

bool Ended() { return ended.load(std::memory_order_relaxed); }

}  // namespace rocegw::bench

int main(int argc, char** argv) {
  using namespace rocegw::bench;  // NOLINT(google-build-using-namespace)
  const bool serves = argc == 4 && std::strcmp(argv[1], "serve") == 0;
  if (argc != 5 && !serves) {
    std::fprintf(stderr,
                 "usage: neighbour serve GID_INDEX PORT\n"
                 "       neighbour VICTIM|KIND GID_INDEX PORT ADDRESS\n");
    return 2;
  }
  std::signal(SIGTERM, [](int) { ended.store(true); });
  const auto port = static_cast<uint16_t>(std::atoi(argv[3]));
  const int gid_index = std::atoi(argv[2]);
  if (serves) {
    Serve(port, gid_index);
    return 0;
  }
  const Server server{argv[4], port, gid_index};
  if (const Victim* const victim = FindVictim(argv[1])) {
    BehaveWell(*victim, server);
  } else if (!MakeNoise(argv[1], server)) {
    std::fprintf(stderr, "neighbour: there is no kind of noise named %s\n", argv[1]);
    return 2;
  }
  return 0;
}
