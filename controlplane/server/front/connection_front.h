// SPDX-License-Identifier: Apache-2.0
// Listener of the TLS port. Accepts connections, bounds those without a certificate so far, and
// passes each descriptor to the gRPC server, which then owns it.
//
// A connection is a stranger's until a call with a valid certificate arrives on it. Strangers are
// bounded in number, per source, in time and in received bytes. At a bound the oldest stranger of
// the busiest source is closed, so that a new caller always gets a chance for its handshake.
// Members are bounded per principal, in connections and in calls. Descriptors are kept in reserve:
// strangers are closed before the process runs out.
//
// gRPC takes up to 10 KiB for a stream of 15 bytes and accepts any number of streams from a client
// that does not acknowledge its SETTINGS. So gRPC gets few strangers at a time: a connection waits
// here until its ClientHello has arrived and a slot is free, sources by turns. Reading stops after
// stranger_bytes until a certificate is there.
//
// Owns two threads. One accepts connections and watches strangers; it must never wait for gRPC,
// which processes streams on any thread that calls it. The other one passes connections to gRPC and
// returns heap. Admit is called on gRPC's threads.
#pragma once

#include <sys/socket.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "controlplane/server/front/front_limits.h"
#include "controlplane/server/front/hand_off_slots.h"
#include "controlplane/server/front/heap_return.h"
#include "controlplane/server/front/member_connections.h"
#include "gateway/base/status.h"
#include "gateway/base/timing/heartbeat.h"
#include "gateway/base/unique_fd.h"

namespace rocegw::server {

enum class FrontClose : uint8_t {
  kTime,
  kBytes,
  kSource,
  kStrangers,
  kDescriptors,
  kMember,
  kSlots,
  kNoTls,
  kCalls
};
inline constexpr std::array<const char*, 9> kFrontCloseNames = {
    "time", "bytes", "source", "strangers", "descriptors", "member", "slots", "no_tls", "calls"};

class ConnectionFront {
 public:
  // Takes ownership of the connected descriptor. Runs on a thread of the front.
  using HandOff = std::function<void(int listener, int connection)>;

  explicit ConnectionFront(const FrontLimits& limits)
      : limits_(limits),
        slots_(limits.handed, limits.handed_per_source),
        members_(limits.per_member) {}
  ~ConnectionFront() { Stop(); }
  ConnectionFront(const ConnectionFront&) = delete;
  ConnectionFront& operator=(const ConnectionFront&) = delete;

  // `address`: "10.0.0.1:7471", "[::]:7471". Callers wait in the kernel's queue until Start.
  Status Listen(const std::string& address);
  int port() const { return port_; }
  Status Start(HandOff hand_off);
  // Stops accepting. Connections that were passed on stay.
  void Stop();

  // Reports a call with a valid certificate. `peer`: PeerAddress::key. Any thread.
  void Admit(const std::string& peer, const std::string& principal);
  // Closes the connections of a principal that has too many calls; further ones for a while. Any
  // thread.
  void Expel(const std::string& principal);

  size_t strangers() const;
  const Heartbeat& heartbeat() const { return heartbeat_; }
  // Returns how often heap was returned to the system.
  uint64_t heap_returns() const { return heap_.returns(); }
  uint64_t closed(FrontClose reason) const { return closed_[static_cast<size_t>(reason)].load(); }

 private:
  using Clock = std::chrono::steady_clock;
  enum class Stage : uint8_t { kSilent, kWaiting, kHanded, kHeld };
  struct Stranger {
    // The front's own descriptor of the connection.
    UniqueFd watch;
    int handed = -1;  // descriptor that gRPC owns, from kHanded on
    uint64_t cookie = 0;
    std::string peer;
    std::string source;
    Clock::time_point deadline;
    Stage stage = Stage::kSilent;
    Clock::time_point handed_at{};
    uint64_t taken = 0;  // bytes that gRPC had read when reading stopped

    bool has_slot() const { return stage >= Stage::kHanded; }
  };

  void Run();
  void AcceptAll();
  void Accept(UniqueFd connection, const sockaddr_storage& from);
  void CloseOverdue();
  void EndedByPeer(uint64_t id);
  void Received(uint64_t id);
  // Passes waiting strangers to gRPC while slots are free.
  void HandOffWaiting();
  // Run of the second thread.
  void HandOffAll();
  // Gives the stranger whose source has the fewest slots a slot, if one is free. Returns gRPC's
  // descriptor; -1: no stranger got a slot.
  int TakeSlot();
  // Closes strangers that have had their time, for waiting ones of sources with fewer slots.
  void CloseForWaiting();
  bool HasSentTooMuch(const Stranger& stranger) const;
  // Stops gRPC's reading.
  void Hold(Stranger& stranger);
  void CloseOldestOf(const std::string& source, FrontClose reason);
  std::string BusiestSource() const;
  void Close(uint64_t id, FrontClose reason);
  static void ShutDown(const Stranger& stranger);
  void Forget(uint64_t id);
  // `source`: address or principal.
  void CountClosed(FrontClose reason, const std::string& source, uint64_t count = 1);

  const FrontLimits limits_;
  UniqueFd listener_;
  UniqueFd epoll_;
  UniqueFd wake_;
  int port_ = 0;
  HandOff hand_off_;
  std::atomic<bool> stopping_{false};
  Heartbeat heartbeat_;
  std::array<std::atomic<uint64_t>, kFrontCloseNames.size()> closed_{};

  mutable std::mutex mutex_;  // guards the fields below
  uint64_t next_id_ = 2;
  std::map<uint64_t, Stranger> strangers_;  // in order of arrival
  std::unordered_map<std::string, uint64_t> by_peer_;
  std::unordered_map<std::string, size_t> per_source_;
  std::set<uint64_t> waiting_;  // in order of arrival
  HandOffSlots slots_;
  MemberConnections members_;
  std::vector<int> to_hand_off_;  // descriptors that will be gRPC's
  std::condition_variable taken_;
  Clock::time_point next_report_;
  uint64_t unreported_ = 0;

  HeapReturn heap_;
  std::thread thread_;
  std::thread hand_off_thread_;
};

}  // namespace rocegw::server
