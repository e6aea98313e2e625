// SPDX-License-Identifier: Apache-2.0
// Captures of the running gateway: starts and ends them, switches the workers to recording queues
// only during a capture, and updates the filters of a tenant's capture as queue pairs and addresses
// change. At most four at a time, one per tenant; one tap is reserved for captures without a
// tenant. Owner: session server, control thread.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gateway/base/ids.h"
#include "gateway/base/status.h"
#include "gateway/port/capture/capture_port.h"
#include "gateway/session/services.h"

namespace rocegw::session {

struct CaptureOrder {
  // "tenants/T/pools/P", "tenants/T/pools/-": packets of these pools only; empty: all.
  std::string pool;
  Qpn qpn;         // 0: all
  wire::Gid peer;  // zero: all
  port::CaptureConfig bounds;
};

// Queues of a worker by device: the plain ones, and their recording decorators.
struct CaptureQueues {
  std::vector<port::PacketPort*> plain;
  std::vector<port::PacketPort*> recording;
};

class Captures {
 public:
  // Calls the function with the number of each queue pair of the pools in the scope.
  using ListQps =
      std::function<void(const std::string& scope, const std::function<void(Qpn)>& add)>;

  Captures(Services& services, ListQps list_qps)
      : services_(services), list_qps_(std::move(list_qps)) {}

  // Sets taps and the queues by worker. Call before the first Start.
  void SetQueues(port::CaptureTaps& taps, std::vector<CaptureQueues> queues);

  // Starts a capture. `started` is called when all workers record, or with the error (ENOENT: no
  // such pool here, EBUSY: too many captures, ENOTSUP: no queues). Then the sink gets the file.
  void Start(const CaptureOrder& order, std::shared_ptr<port::CaptureSink> sink,
             std::function<void(const Status&)> started);
  // Ends a capture that has no reader any more.
  void Abort(const std::shared_ptr<port::CaptureSink>& sink);
  // Ends all captures; the sinks' threads have ended afterwards.
  void StopAll();

  void QpAdded(const std::string& pool, Qpn qpn);
  void QpRemoved(const std::string& pool, Qpn qpn);
  void PoolsChanged();

 private:
  struct Running {
    std::string pool;
    std::shared_ptr<port::CaptureSink> sink;  // empty: unused
    uint64_t number = 0;
  };

  std::vector<wire::Gid> AddressesOf(const std::string& scope);
  bool Exists(const std::string& scope);
  // Returns a free tap; kCaptureTaps: none.
  size_t FreePlace(const std::string& pool) const;
  void UseQueues(bool recording, std::function<void()> done);
  void Ended(size_t place, uint64_t number);
  void Free(size_t place);

  Services& services_;
  const ListQps list_qps_;
  port::CaptureTaps* taps_ = nullptr;
  std::vector<CaptureQueues> queues_;
  std::array<Running, port::kCaptureTaps> running_;
  uint64_t last_number_ = 0;
};

}  // namespace rocegw::session
