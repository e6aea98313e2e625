// SPDX-License-Identifier: Apache-2.0
// Programs of two hosts with many connected queue pairs. The writer posts WRITEs round-robin over
// the first N of its queue pairs, for several N in turn, and prints messages per second.
//
// Usage: queue_pair_load serve PORT QUEUE_PAIRS BYTES
//        queue_pair_load write PORT QUEUE_PAIRS BYTES ADDRESS WINDOW SECONDS ROUNDS ACTIVE...
//
// Both ends exchange queue pair numbers over TCP. At most WINDOW messages are in flight. A round
// runs SECONDS for each of ACTIVE, after as long a time that does not count. The last line of the
// output is JSON: an array of rates for each of ACTIVE, one for each round.
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/bench/connected.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kGidIndex = 1;  // IPv4; index 0 is the link-local address
constexpr uint32_t kDepth = 4;

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stderr, "queue_pair_load: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

// Memory of one end that the peer writes to.
struct Place {
  uint64_t address = 0;
  uint32_t rkey = 0;
};

class End {
 public:
  End(uint32_t queue_pairs, uint32_t bytes, int completions) : memory_(bytes) {
    ibv_device** const devices = ibv_get_device_list(nullptr);
    if (devices == nullptr || devices[0] == nullptr) Fail("device list");
    context_ = ibv_open_device(devices[0]);
    ibv_free_device_list(devices);
    if (context_ == nullptr) Fail("device");
    pd_ = ibv_alloc_pd(context_);
    cq_ = ibv_create_cq(context_, completions, nullptr, nullptr, 0);
    if (pd_ == nullptr || cq_ == nullptr) Fail("completion queue");
    region_ = ibv_reg_mr(pd_, memory_.data(), memory_.size(),
                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    if (region_ == nullptr) Fail("region");
    for (uint32_t i = 0; i < queue_pairs; ++i) {
      ibv_qp_init_attr init{};
      init.send_cq = init.recv_cq = cq_;
      init.qp_type = IBV_QPT_RC;
      init.cap = {kDepth, 1, 1, 1, 0};
      init.sq_sig_all = 1;
      queue_pairs_.push_back(ibv_create_qp(pd_, &init));
      if (queue_pairs_.back() == nullptr) Fail("queue pair");
    }
  }
  // Connects the queue pairs to the peer's, which the other end of the socket names.
  void Connect(int socket, const ibv_gid& peer) {
    std::vector<uint32_t> numbers, theirs(queue_pairs_.size());
    for (const ibv_qp* const qp : queue_pairs_) numbers.push_back(qp->qp_num);
    const Place own{reinterpret_cast<uint64_t>(memory_.data()), region_->rkey};
    Write(socket, numbers.data(), numbers.size() * sizeof numbers[0]);
    Write(socket, &own, sizeof own);
    Read(socket, theirs.data(), theirs.size() * sizeof theirs[0]);
    Read(socket, &place_, sizeof place_);
    for (size_t i = 0; i < queue_pairs_.size(); ++i)
      if (!ConnectTo(queue_pairs_[i], theirs[i], peer, kGidIndex, IBV_MTU_4096)) Fail("connection");
    // Both ends are connected before the first message.
    char ready = 1;
    Write(socket, &ready, sizeof ready);
    Read(socket, &ready, sizeof ready);
  }
  // Writes for that time over the first queue pairs. Returns messages per second.
  double Run(uint32_t active, uint32_t window, double seconds) {
    const auto begin = Clock::now();
    uint64_t done = 0;
    std::chrono::duration<double> passed{};
    for (uint32_t in_flight = 0; passed.count() < seconds || in_flight != 0;) {
      while (passed.count() < seconds && in_flight < window && Post(queue_pairs_[next_ % active])) {
        ++in_flight;
        ++next_;
      }
      ibv_wc wcs[64];
      const int got = ibv_poll_cq(cq_, 64, wcs);
      if (got < 0) Fail("completions");
      for (int i = 0; i < got; ++i) {
        errno = EIO;
        if (wcs[i].status != IBV_WC_SUCCESS) Fail(ibv_wc_status_str(wcs[i].status));
      }
      in_flight -= static_cast<uint32_t>(got);
      done += static_cast<uint64_t>(got);
      passed = Clock::now() - begin;
    }
    return static_cast<double>(done) / passed.count();
  }

 private:
  static void Write(int socket, const void* from, size_t bytes) {
    if (send(socket, from, bytes, 0) != static_cast<ssize_t>(bytes)) Fail("send");
  }
  static void Read(int socket, void* to, size_t bytes) {
    if (recv(socket, to, bytes, MSG_WAITALL) != static_cast<ssize_t>(bytes)) Fail("receive");
  }
  // Returns false if the queue is full.
  bool Post(ibv_qp* qp) {
    ibv_sge sge{reinterpret_cast<uint64_t>(memory_.data()), static_cast<uint32_t>(memory_.size()),
                region_->lkey};
    ibv_send_wr wr{};
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.wr.rdma.remote_addr = place_.address;
    wr.wr.rdma.rkey = place_.rkey;
    ibv_send_wr* bad;
    errno = ibv_post_send(qp, &wr, &bad);
    if (errno != 0 && errno != ENOMEM) Fail("post");
    return errno == 0;
  }

  std::vector<char> memory_;
  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_mr* region_ = nullptr;
  std::vector<ibv_qp*> queue_pairs_;
  Place place_;  // at the peer
  uint32_t next_ = 0;
};

ibv_gid GidOf(const sockaddr_in& address) {
  ibv_gid gid{};
  gid.raw[10] = gid.raw[11] = 0xFF;
  std::memcpy(gid.raw + 12, &address.sin_addr, 4);
  return gid;
}

int Serve(uint16_t port, uint32_t queue_pairs, uint32_t bytes) {
  End end(queue_pairs, bytes, 16);
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  const auto* const any = reinterpret_cast<const sockaddr*>(&address);
  if (bind(listener, any, sizeof address) != 0 || listen(listener, 1) != 0) Fail("listen");
  std::printf("serving\n");
  std::fflush(stdout);
  socklen_t length = sizeof address;
  const int peer = accept(listener, reinterpret_cast<sockaddr*>(&address), &length);
  if (peer < 0) Fail("accept");
  end.Connect(peer, GidOf(address));
  char ended;
  return recv(peer, &ended, 1, 0) == 0 ? 0 : 1;
}

int WriteTo(uint16_t port, uint32_t queue_pairs, uint32_t bytes, char** argv, int argc) {
  const auto window = static_cast<uint32_t>(std::atoi(argv[1]));
  const double seconds = std::atof(argv[2]);
  End end(queue_pairs, bytes, static_cast<int>(window));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  errno = EINVAL;
  if (inet_pton(AF_INET, argv[0], &address.sin_addr) != 1) Fail(argv[0]);
  const int server = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    Fail("connect");
  end.Connect(server, GidOf(address));
  std::vector<uint32_t> active;
  for (int i = 4; i < argc; ++i)
    active.push_back(std::clamp(static_cast<uint32_t>(std::atoi(argv[i])), 1u, queue_pairs));
  std::vector<std::string> rates(active.size());
  for (int round = 0; round < std::atoi(argv[3]); ++round) {
    for (size_t i = 0; i < active.size(); ++i) {
      end.Run(active[i], window, seconds);
      const double rate = end.Run(active[i], window, seconds);
      rates[i] += (round == 0 ? "" : ", ") + std::to_string(rate);
    }
  }
  std::printf("[");
  for (size_t i = 0; i < rates.size(); ++i)
    std::printf("%s[%s]", i == 0 ? "" : ", ", rates[i].c_str());
  std::printf("]\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const bool serves = argc == 5 && std::strcmp(argv[1], "serve") == 0;
  const bool writes = argc >= 10 && std::strcmp(argv[1], "write") == 0;
  if (!serves && !writes) {
    std::fprintf(
        stderr,
        "usage: queue_pair_load serve PORT QUEUE_PAIRS BYTES\n"
        "       queue_pair_load write PORT QUEUE_PAIRS BYTES ADDRESS WINDOW SECONDS ROUNDS "
        "ACTIVE...\n");
    return 2;
  }
  const auto port = static_cast<uint16_t>(std::atoi(argv[2]));
  const auto queue_pairs = static_cast<uint32_t>(std::atoi(argv[3]));
  const auto bytes = static_cast<uint32_t>(std::atoi(argv[4]));
  return serves ? Serve(port, queue_pairs, bytes)
                : WriteTo(port, queue_pairs, bytes, argv + 5, argc - 5);
}
