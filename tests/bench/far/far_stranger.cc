// SPDX-License-Identifier: Apache-2.0
// Peer of remote memory that does not keep to what a session or a donor says. Driven by the e2e
// cases.
//   far_stranger sessions HOST PORT TENANT    opens sessions until one is refused, holds them
//   far_stranger lease HOST PORT BYTES        asks for one lease
//   far_stranger messages HOST PORT [BYTES]   leases and returns as fast as it can, 8 connections
//   far_stranger requests HOST PORT           requests without a Hello, as fast as it can
//   far_stranger cross HOST PORT              reads the lease of another session with its true key
//   far_stranger donor HOST PORT talk|slow    donor that talks unasked, or answers late
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gateway/far/link/connection.h"

namespace rocegw::far {
namespace {

constexpr auto kPatience = std::chrono::seconds(10);
constexpr uint64_t kLease = 64 << 10;

// Connection with a completion queue of its own, which is polled.
class Peer {
 public:
  Peer() = default;
  explicit Peer(rdma_cm_id* id) : connection_(std::make_unique<Connection>(id)) {}
  ~Peer() {
    if (connection_ == nullptr) return;
    connection_->Abort();
    connection_.reset();
    if (cq_ != nullptr) ibv_destroy_cq(cq_);
    if (pd_ != nullptr) ibv_dealloc_pd(pd_);
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  Status Open(const std::string& host, const std::string& port, const std::string& tenant) {
    connection_ = std::make_unique<Connection>();
    const auto deadline = Clock::now() + kPatience;
    if (Status status = connection_->Resolve(host, port, deadline); !status.ok()) return status;
    if (Status status = Prepare(); !status.ok()) return status;
    const auto welcome = connection_->Connect({tenant}, deadline);
    return welcome.ok() ? OkStatus() : welcome.status();
  }
  Status Prepare() {
    pd_ = ibv_alloc_pd(connection_->context());
    cq_ = ibv_create_cq(connection_->context(), 512, nullptr, nullptr, 0);
    if (pd_ == nullptr || cq_ == nullptr) return {errno, "no queue"};
    return connection_->MakeQueuePair(pd_, cq_, {16, 1});
  }
  // Waits for the next completion of a message that was received.
  std::optional<Message> Hear(Clock::time_point deadline = Clock::now() + kPatience) {
    ibv_wc completion{};
    while (Clock::now() < deadline) {
      if (ibv_poll_cq(cq_, 1, &completion) <= 0) continue;
      if (completion.status != IBV_WC_SUCCESS) return std::nullopt;
      auto* what = reinterpret_cast<Completable*>(completion.wr_id);
      connection_->OnCompletion(*what);
      if (what->kind != Completable::Kind::kReceivedMessage) continue;
      const auto message = connection_->Received(*what, completion.byte_len);
      connection_->Rearm(*what);
      return message;
    }
    return std::nullopt;
  }
  std::optional<Message> Ask(const Message& message) {
    if (connection_->Send(message) != 0) return std::nullopt;
    return Hear();
  }
  // Status of a READ.
  ibv_wc_status Read(uint64_t address, uint32_t key) {
    static char buffer[64];
    ibv_mr* mr = ibv_reg_mr(pd_, buffer, sizeof buffer, IBV_ACCESS_LOCAL_WRITE);
    Completable mark{Completable::Kind::kTransfer, connection_.get()};
    ibv_sge segment{reinterpret_cast<uintptr_t>(buffer), sizeof buffer, mr->lkey};
    ibv_send_wr request{};
    request.wr_id = reinterpret_cast<uintptr_t>(&mark);
    request.sg_list = &segment;
    request.num_sge = 1;
    request.opcode = IBV_WR_RDMA_READ;
    request.send_flags = IBV_SEND_SIGNALED;
    request.wr.rdma.remote_addr = address;
    request.wr.rdma.rkey = key;
    ibv_send_wr* bad = nullptr;
    if (connection_->Post(&request, &bad) != 0) return IBV_WC_GENERAL_ERR;
    ibv_wc completion{};
    do {
      while (ibv_poll_cq(cq_, 1, &completion) == 0) {
      }
    } while (completion.wr_id != request.wr_id);
    ibv_dereg_mr(mr);
    return completion.status;
  }
  Connection& connection() { return *connection_; }

 private:
  ibv_pd* pd_ = nullptr;
  ibv_cq* cq_ = nullptr;
  std::unique_ptr<Connection> connection_;
};

Message Lease(uint64_t bytes, uint64_t id = 0) {
  Message message;
  message.type = MessageType::kLease;
  message.bytes = bytes;
  message.id = id;
  return message;
}

void Say(const char* text, uint64_t number) {
  std::printf("%s %llu\n", text, static_cast<unsigned long long>(number));
  std::fflush(stdout);
}

int Sessions(const std::string& host, const std::string& port, const std::string& tenant) {
  std::vector<std::unique_ptr<Peer>> peers;
  for (;;) {
    peers.push_back(std::make_unique<Peer>());
    if (!peers.back()->Open(host, port, tenant).ok()) break;
  }
  Say("sessions", peers.size() - 1);
  for (;;) {
    for (const auto& peer : peers) peer->connection().Send(Message{});
    sleep(3);
  }
}

int OneLease(const std::string& host, const std::string& port, const std::string& bytes) {
  Peer peer;
  if (const Status status = peer.Open(host, port, "stranger"); !status.ok()) {
    std::printf("%s\n", status.text().c_str());
    return 1;
  }
  const auto answer = peer.Ask(Lease(std::strtoull(bytes.c_str(), nullptr, 10)));
  if (!answer) return 1;
  Say("error", static_cast<uint64_t>(answer->error));
  return 0;
}

int Messages(const std::string& host, const std::string& port, uint64_t bytes) {
  std::vector<std::thread> threads;
  for (int number = 0; number < 8; number++) {
    threads.emplace_back([&] {
      for (;;) {
        Peer peer;
        if (!peer.Open(host, port, "stranger").ok()) continue;
        for (int ahead = 0; ahead < 7; ahead++) peer.connection().Send(Lease(bytes));
        while (const auto answer = peer.Hear()) {
          Message back;
          back.type = MessageType::kReturn;
          back.lease = answer->lease;
          peer.connection().Send(back);
          peer.connection().Send(Lease(bytes));
        }
      }
    });
  }
  Say("floods", threads.size());
  for (std::thread& thread : threads) thread.join();
  return 0;
}

int Requests(const std::string& host, const std::string& port) {
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; number++) {
    // A name that is empty is refused.
    threads.emplace_back([&] {
      for (;;) [[maybe_unused]] const Status refused = Peer().Open(host, port, "");
    });
  }
  Say("floods", threads.size());
  for (std::thread& thread : threads) thread.join();
  return 0;
}

int Cross(const std::string& host, const std::string& port) {
  Peer owner;
  Peer other;
  if (!owner.Open(host, port, "owner").ok() || !other.Open(host, port, "other").ok()) return 1;
  const auto lease = owner.Ask(Lease(kLease));
  if (!lease || lease->error != 0) return 1;
  Say("own", owner.Read(lease->address, lease->key));
  Say("other", other.Read(lease->address, lease->key));
  return 0;
}

// Grants leases of one memory region to one session. Talks unasked, or answers each lease late.
int BadDonor(const std::string& host, const std::string& port, const std::string& how) {
  rdma_event_channel* channel = rdma_create_event_channel();
  rdma_cm_id* listener = nullptr;
  if (channel == nullptr || rdma_create_id(channel, &listener, nullptr, RDMA_PS_TCP) != 0) return 1;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), port.c_str(), nullptr, &found) != 0) return 1;
  if (rdma_bind_addr(listener, found->ai_addr) != 0 || rdma_listen(listener, 4) != 0) return 1;
  Say("donates", 1);
  for (;;) {
    rdma_cm_event* event = nullptr;
    if (rdma_get_cm_event(channel, &event) != 0) return 1;
    rdma_cm_id* id = event->id;
    const bool asks = event->event == RDMA_CM_EVENT_CONNECT_REQUEST;
    rdma_ack_cm_event(event);
    if (!asks) continue;
    Peer peer(id);
    Welcome welcome;
    welcome.lease_seconds = 15;
    welcome.free_bytes = uint64_t{1} << 40;
    if (!peer.Prepare().ok() || !peer.connection().Accept(welcome).ok()) continue;
    Say("session", 1);
    const auto now = [] { return Clock::now(); };
    auto talk_at = now() + std::chrono::seconds(1);
    std::vector<std::pair<Clock::time_point, Message>> late;
    for (auto heard = now(); now() - heard < kPatience;) {
      if (const auto message = peer.Hear(now() + std::chrono::milliseconds(1))) {
        heard = now();
        Message answer;
        answer.free_bytes = welcome.free_bytes;
        answer.type =
            message->type == MessageType::kLease ? MessageType::kLeased : MessageType::kRenewed;
        answer.id = message->id;
        answer.error = how == "slow" ? 0 : ENOMEM;
        const auto pause = std::chrono::milliseconds(
            how == "slow" && message->type == MessageType::kLease ? 900 : 0);
        if (message->type != MessageType::kReturn) late.emplace_back(now() + pause, answer);
      }
      std::erase_if(late, [&](const auto& each) {
        return now() >= each.first && peer.connection().Send(each.second) == 0;
      });
      if (how != "talk" || now() < talk_at) continue;
      Message unasked;
      unasked.type = MessageType::kRenewed;
      unasked.free_bytes = welcome.free_bytes;
      unasked.draining = true;
      peer.connection().Send(unasked);
    }
  }
}

int Run(const std::vector<std::string>& words) {
  if (words.size() < 3) return 64;
  const std::string& what = words[0];
  if (what == "messages") {
    const uint64_t bytes = words.size() > 3 ? std::strtoull(words[3].c_str(), nullptr, 10) : kLease;
    return Messages(words[1], words[2], bytes);
  }
  if (what == "requests") return Requests(words[1], words[2]);
  if (what == "cross") return Cross(words[1], words[2]);
  if (words.size() < 4) return 64;
  if (what == "sessions") return Sessions(words[1], words[2], words[3]);
  if (what == "lease") return OneLease(words[1], words[2], words[3]);
  if (what == "donor") return BadDonor(words[1], words[2], words[3]);
  return 64;
}

}  // namespace
}  // namespace rocegw::far

int main(int count, char** words) { return rocegw::far::Run({words + 1, words + count}); }
