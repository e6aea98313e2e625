// SPDX-License-Identifier: Apache-2.0
// Listener of the TLS port. Accepts connections, bounds those without a certificate so far, and
// passes each descriptor to the gRPC server, which then owns it.
//
// A connection is a stranger's until a call with a valid certificate arrives on it. Strangers are
// bounded in number, per source, in time and in received bytes. At a bound the oldest stranger of
// the busiest source is closed, so that a new caller always gets a chance for its handshake.
// Members are bounded per principal. Descriptors are kept in reserve: strangers are closed before
// the process runs out.
//
// Owns one thread. Admit is called on gRPC's threads.
#pragma once

#include <sys/socket.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"

namespace rocegw::server {

struct FrontLimits {
  size_t strangers = 1024;
  size_t strangers_per_source = 512;
  // Time from accept to the first call with a certificate.
  std::chrono::milliseconds stranger_time{30000};
  // Checked when data arrives; more may arrive until the front's thread runs. Covers a handshake,
  // headers and the 64 KiB of a message that HTTP/2 accepts before the call is known.
  uint64_t stranger_bytes = 1 << 17;
  size_t per_member = 256;
  // Limit of descriptor numbers: a connection with this number or a higher one is refused.
  int descriptors = 1 << 20;
};

// Returns limits for a process with this RLIMIT_NOFILE.
FrontLimits LimitsFor(uint64_t descriptor_limit);

// Converts grpc::ServerContext::peer() to "10.0.0.1:4711" or "[2001:db8::1]:4711". Empty: not TCP.
std::string PeerKey(std::string_view grpc_peer);

enum class FrontClose : uint8_t { kTime, kBytes, kSource, kStrangers, kDescriptors, kMember };
inline constexpr std::array<const char*, 6> kFrontCloseNames = {
    "time", "bytes", "source", "strangers", "descriptors", "member"};

class ConnectionFront {
 public:
  // Takes ownership of the connected descriptor. Runs on the front's thread.
  using HandOff = std::function<void(int listener, int connection)>;

  explicit ConnectionFront(const FrontLimits& limits) : limits_(limits) {}
  ~ConnectionFront() { Stop(); }
  ConnectionFront(const ConnectionFront&) = delete;
  ConnectionFront& operator=(const ConnectionFront&) = delete;

  // `address`: "10.0.0.1:7471", "[::]:7471". Callers wait in the kernel's queue until Start.
  Status Listen(const std::string& address);
  int port() const { return port_; }
  Status Start(HandOff hand_off);
  // Stops accepting. Connections that were passed on stay.
  void Stop();

  // Reports a call with a valid certificate. `peer`: PeerKey. Any thread.
  void Admit(const std::string& peer, const std::string& principal);

  size_t strangers() const;
  // Returns how often heap was returned to the system.
  uint64_t heap_returns() const { return heap_returns_.load(); }
  uint64_t closed(FrontClose reason) const { return closed_[static_cast<size_t>(reason)].load(); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Stranger {
    // Second descriptor of the connection, for shutting it down and noticing its end.
    UniqueFd watch;
    int handed = -1;  // descriptor that gRPC owns
    uint64_t cookie = 0;
    std::string peer;
    std::string source;
    Clock::time_point deadline;
  };
  // gRPC's descriptor number and the socket's cookie, which together show if the connection still
  // exists.
  struct Member {
    int handed = -1;
    uint64_t cookie = 0;
  };

  void Run();
  void AcceptAll();
  void Accept(UniqueFd connection, const sockaddr_storage& from);
  void CloseOverdue();
  void EndedByPeer(uint64_t id);
  void Received(uint64_t id);
  void CloseOldestOf(const std::string& source, FrontClose reason);
  std::string BusiestSource() const;
  void Close(uint64_t id, FrontClose reason);
  void Forget(uint64_t id);
  void CountClosed(FrontClose reason, const std::string& source);
  // Returns true if enough strangers have ended for returning the memory of their streams.
  bool HeapIsDue() const;
  void ReturnHeap();

  const FrontLimits limits_;
  UniqueFd listener_;
  UniqueFd epoll_;
  UniqueFd wake_;
  int port_ = 0;
  HandOff hand_off_;
  std::atomic<bool> stopping_{false};
  std::array<std::atomic<uint64_t>, kFrontCloseNames.size()> closed_{};
  std::atomic<uint64_t> heap_returns_{0};

  mutable std::mutex mutex_;  // guards the fields below
  uint64_t next_id_ = 2;
  std::map<uint64_t, Stranger> strangers_;  // in order of arrival
  std::unordered_map<std::string, uint64_t> by_peer_;
  std::unordered_map<std::string, size_t> per_source_;
  std::unordered_map<std::string, std::vector<Member>> members_;  // by principal
  uint64_t ended_ = 0;  // ended strangers since a heap check became due
  int heap_looks_ = 0;  // checks to come
  Clock::time_point heap_due_;
  Clock::time_point next_report_;
  uint64_t unreported_ = 0;

  std::thread thread_;
};

}  // namespace rocegw::server
