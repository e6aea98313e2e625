// SPDX-License-Identifier: Apache-2.0
// Two programs whose queue pairs exchange messages without end. The server returns every message;
// the client compares each byte and the order of each queue pair's messages, and measures how long
// nothing arrives. At SIGTERM the client waits for what is under way and reports; exit status 0:
// all messages came back whole, once and in order (UD: whole; a lost datagram is sent again).
//
//   verified_echo serve GID_INDEX PORT
//   verified_echo ask GID_INDEX PORT ADDRESS QUEUE_PAIRS KIND [LENGTH [BYTES]]
//     KIND: rc, srq (RC with a shared receive queue and events of its limit), ud, xrc
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/bench/upgrade/ends.h"

namespace rocegw::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLongPause(5);
constexpr std::chrono::milliseconds kDatagramIsLost(500);
constexpr std::chrono::seconds kNothingComes(20);

volatile std::sig_atomic_t ended = 0;

sockaddr_in AddressOf(const char* text, uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  if (text != nullptr && inet_pton(AF_INET, text, &address.sin_addr) != 1) Fail(text);
  return address;
}

// Bytes of a message: its number, the queue pair, then a pattern of both.
void Fill(uint8_t* message, uint32_t length, uint32_t at, uint64_t number) {
  uint64_t value = number * 0x9E3779B97F4A7C15u ^ uint64_t { at } << 40;
  for (uint32_t i = 0; i + 8 <= length; i += 8) {
    const uint64_t word = i == 0 ? number : value;
    std::memcpy(message + i, &word, 8);
    value += 0xD1B54A32D192ED03u;
  }
}

class Client {
 public:
  explicit Client(Ends& ends) : ends_(ends), of_(ends.shape().queue_pairs) {
    expected_.resize(ends.shape().length);
  }

  // Returns the exit status.
  int Run() {
    last_ = Clock::now();
    for (uint32_t at = 0; at < of_.size(); ++at)
      for (uint32_t slot = 0; slot < Ends::kWindow; ++slot) Send(at, slot);
    std::array<ibv_wc, 64> done;
    while (ended == 0 || open_ > 0) {
      const int count = ends_.Wait(done.data(), static_cast<int>(done.size()));
      for (int i = 0; i < count; ++i) Take(done[static_cast<size_t>(i)]);
      if (ends_.shape().ud != 0) Repeat();
      if (Clock::now() - last_ > kNothingComes) {
        ++wrong_;
        break;
      }
    }
    Report();
    return wrong_ == 0 ? 0 : 1;
  }

 private:
  struct Slot {
    uint64_t number = 0;
    bool open = false;      // the answer is not here
    bool in_queue = false;  // the request is not completed
    Clock::time_point sent;
  };
  struct Of {
    uint64_t next = 1;
    uint64_t answered = 0;
    std::array<Slot, Ends::kWindow> slots;
  };

  bool ordered() const { return ends_.shape().ud == 0; }
  void Send(uint32_t at, uint32_t slot) {
    Slot& one = of_[at].slots[slot];
    if (!one.open) {
      one.number = of_[at].next++;
      one.open = true;
      ++open_;
    }
    one.in_queue = true;
    one.sent = Clock::now();
    Fill(ends_.SendSlot(at, slot), ends_.shape().length, at, one.number);
    ends_.Send(at, slot);
  }
  void SendIfFree(uint32_t at, uint32_t slot) {
    const Slot& one = of_[at].slots[slot];
    if (!one.open && !one.in_queue && ended == 0) Send(at, slot);
  }
  void Take(const ibv_wc& wc) {
    if (wc.status != IBV_WC_SUCCESS) {
      errno = 0;
      Fail(ibv_wc_status_str(wc.status));
    }
    if ((wc.opcode & IBV_WC_RECV) == 0) {
      const auto at = static_cast<uint32_t>(wc.wr_id / Ends::kWindow);
      const auto slot = static_cast<uint32_t>(wc.wr_id % Ends::kWindow);
      of_[at].slots[slot].in_queue = false;
      return SendIfFree(at, slot);
    }
    const Clock::time_point now = Clock::now();
    if (now - last_ > kLongPause) ++pauses_;
    longest_ = std::max(longest_, now - last_);
    last_ = now;
    Judge(ends_.IndexOf(wc.qp_num), wc);
    ends_.Receive(wc.wr_id);
  }
  void Judge(uint32_t at, const ibv_wc& wc) {
    const uint32_t length = ends_.shape().length;
    const uint8_t* const message = ends_.ReceiveSlot(wc.wr_id);
    uint64_t number = 0;
    std::memcpy(&number, message, sizeof number);
    Of& of = of_[at];
    // Messages of a queue pair are in their order, each once.
    const uint64_t due = ordered() ? ++of.answered : number;
    Fill(expected_.data(), length, at, due);
    const uint32_t header = ordered() ? 0 : Ends::kUdHeader;
    ++messages_;
    if (wc.byte_len != length + header || std::memcmp(message, expected_.data(), length) != 0) {
      if (++wrong_ <= 5) {
        std::printf("wrong: queue pair %u, message %llu instead of %llu, %u bytes\n", at,
                    static_cast<unsigned long long>(number), static_cast<unsigned long long>(due),
                    wc.byte_len);
      }
      if (!ordered()) return;
    }
    for (uint32_t slot = 0; slot < Ends::kWindow; ++slot) {
      Slot& one = of.slots[slot];
      if (!one.open || one.number != due) continue;
      one.open = false;
      --open_;
      return SendIfFree(at, slot);
    }
    // A datagram that was sent again may be answered twice.
    if (ordered()) ++wrong_;
  }
  // Sends datagrams again that were lost on the way.
  void Repeat() {
    const Clock::time_point now = Clock::now();
    if (now - looked_ < kDatagramIsLost / 4) return;
    looked_ = now;
    for (uint32_t at = 0; at < of_.size(); ++at) {
      for (uint32_t slot = 0; slot < Ends::kWindow; ++slot) {
        const Slot& one = of_[at].slots[slot];
        if (!one.open || one.in_queue || now - one.sent < kDatagramIsLost) continue;
        ++repeated_;
        Send(at, slot);
      }
    }
  }
  void Report() const {
    std::printf(
        "messages=%llu wrong=%llu open=%llu repeated=%llu pauses=%llu longest_ms=%.1f "
        "limits=%llu\n",
        static_cast<unsigned long long>(messages_), static_cast<unsigned long long>(wrong_),
        static_cast<unsigned long long>(open_), static_cast<unsigned long long>(repeated_),
        static_cast<unsigned long long>(pauses_),
        std::chrono::duration<double, std::milli>(longest_).count(),
        static_cast<unsigned long long>(ends_.limits_reached()));
  }

  Ends& ends_;
  std::vector<Of> of_;
  std::vector<uint8_t> expected_;
  uint64_t open_ = 0;
  uint64_t messages_ = 0;
  uint64_t wrong_ = 0;
  uint64_t repeated_ = 0;
  uint64_t pauses_ = 0;
  Clock::duration longest_{};
  Clock::time_point last_;
  Clock::time_point looked_;
};

// Returns messages from the slots in turn, because a slot is free when its send is completed.
int Serve(Ends& ends) {
  struct Of {
    std::vector<uint64_t> waiting;  // received, not returned
    std::array<bool, Ends::kWindow> busy{};
  };
  std::vector<Of> of(ends.shape().queue_pairs);
  const auto answer = [&](uint32_t at) {
    for (uint32_t slot = 0; slot < Ends::kWindow && !of[at].waiting.empty(); ++slot) {
      if (of[at].busy[slot]) continue;
      const uint64_t number = of[at].waiting.front();
      of[at].waiting.erase(of[at].waiting.begin());
      std::memcpy(ends.SendSlot(at, slot), ends.ReceiveSlot(number), ends.shape().length);
      ends.Receive(number);
      of[at].busy[slot] = true;
      ends.Send(at, slot);
    }
  };
  std::array<ibv_wc, 64> done;
  while (ended == 0) {
    const int count = ends.Wait(done.data(), static_cast<int>(done.size()));
    for (int i = 0; i < count; ++i) {
      const ibv_wc& wc = done[static_cast<size_t>(i)];
      if (wc.status != IBV_WC_SUCCESS) {
        errno = 0;
        Fail(ibv_wc_status_str(wc.status));
      }
      uint32_t at = 0;
      if ((wc.opcode & IBV_WC_RECV) != 0) {
        at = ends.IndexOf(wc.qp_num);
        of[at].waiting.push_back(wc.wr_id);
      } else {
        at = static_cast<uint32_t>(wc.wr_id / Ends::kWindow);
        of[at].busy[wc.wr_id % Ends::kWindow] = false;
      }
      answer(at);
    }
  }
  std::printf("served limits=%llu\n", static_cast<unsigned long long>(ends.limits_reached()));
  return 0;
}

int Accept(uint16_t port) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const sockaddr_in at = AddressOf(nullptr, port);
  if (bind(listener, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 ||
      listen(listener, 1) != 0)
    Fail("bind");
  std::printf("serving\n");
  std::fflush(stdout);
  const int client = accept(listener, nullptr, nullptr);
  if (client < 0) Fail("accept");
  return client;
}

int Main(int argc, char** argv) {
  const bool serves = argc == 4 && std::strcmp(argv[1], "serve") == 0;
  if (!serves && argc < 7) {
    std::fprintf(stderr, "usage: the head of verified_echo.cc\n");
    return 2;
  }
  struct sigaction action {};
  action.sa_handler = [](int) { ended = 1; };
  sigaction(SIGTERM, &action, nullptr);
  const int gid_index = std::atoi(argv[2]);
  const auto port = static_cast<uint16_t>(std::atoi(argv[3]));
  if (serves) {
    Ends ends(Accept(port), gid_index, {});
    return Serve(ends);
  }
  const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in to = AddressOf(argv[4], port);
  if (connect(server, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) Fail("connect");
  const std::string kind = argv[6];
  Shape shape;
  shape.queue_pairs = static_cast<uint32_t>(std::atoi(argv[5]));
  shape.ud = kind == "ud" ? 1 : 0;
  shape.shared = kind == "srq" ? 1 : 0;
  shape.xrc = kind == "xrc" ? 1 : 0;
  shape.length = argc > 7 ? static_cast<uint32_t>(std::atoi(argv[7])) : 1024;
  shape.bytes = argc > 8 ? std::strtoull(argv[8], nullptr, 10) : 0;
  Ends ends(server, gid_index, shape);
  std::printf("connected\n");
  std::fflush(stdout);
  return Client(ends).Run();
}

}  // namespace
}  // namespace rocegw::bench

int main(int argc, char** argv) { return rocegw::bench::Main(argc, argv); }
