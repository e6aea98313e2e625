// SPDX-License-Identifier: Apache-2.0
// Which verbs device and GID belong to an IP address, and the small objects that need a device:
// protection domain, completion queue with its channel, memory region. Each frees itself. Errors
// throw Failure.
#pragma once

#include <infiniband/verbs.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

namespace rocegw::interop {

struct VerbsDeleter {
  void operator()(ibv_context* p) const { ibv_close_device(p); }
  void operator()(ibv_pd* p) const { ibv_dealloc_pd(p); }
  void operator()(ibv_mr* p) const { ibv_dereg_mr(p); }
  void operator()(ibv_cq* p) const { ibv_destroy_cq(p); }
  void operator()(ibv_comp_channel* p) const { ibv_destroy_comp_channel(p); }
  void operator()(ibv_ah* p) const { ibv_destroy_ah(p); }
};
template <typename T>
using Owned = std::unique_ptr<T, VerbsDeleter>;

// The GID of an address: IPv6 as it is, IPv4 mapped into IPv6.
ibv_gid GidOf(const sockaddr_storage& address);

// Index of a RoCEv2 GID in the port's table; throws when it is not there.
uint8_t GidIndex(ibv_context* context, const ibv_gid& gid);

// Opens the device that has the address's GID.
Owned<ibv_context> OpenDeviceOf(const sockaddr_storage& address);

inline constexpr std::chrono::seconds kCompletionTimeout{30};

// A completion queue, waited for by polling or through its channel.
class Completions {
 public:
  Completions(ibv_context* context, int depth, bool use_events);
  ~Completions();
  Completions(const Completions&) = delete;
  Completions& operator=(const Completions&) = delete;

  ibv_cq* cq() { return cq_.get(); }
  // Waits until at least one completion is there and takes up to `most`. Throws after the timeout,
  // naming what was due.
  std::vector<ibv_wc> Wait(int most, const char* what);
  // The next completion alone.
  ibv_wc WaitOne(const char* what) { return Wait(1, what)[0]; }
  // Asks for an event; EventWithin then tells whether one came. Only with events in use.
  void Arm(bool solicited_only);
  bool EventWithin(std::chrono::milliseconds time);
  // What is there now, without waiting.
  std::vector<ibv_wc> Poll(int most);
  // Throws if a completion arrives within the time.
  void ExpectNone(std::chrono::milliseconds time, const char* why);

 private:
  bool use_events_;
  Owned<ibv_comp_channel> channel_;
  Owned<ibv_cq> cq_;
};

}  // namespace rocegw::interop
