// SPDX-License-Identifier: Apache-2.0
// Captures of the running gateway: starts and ends them, has the workers use the recording queues
// only while one runs, and keeps the filters of those that are for one tenant up to date as its
// queue pairs and addresses come and go. At most four at a time, one for each tenant, and one place
// is kept for captures that are not a tenant's. Owner: session server, control thread.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gateway/base/ids.h"
#include "gateway/base/status.h"
#include "gateway/port/capture/capture_port.h"
#include "gateway/session/attach/attach_server.h"
#include "gateway/session/services.h"

namespace rocegw::session {

struct CaptureOrder {
  // "tenants/T/pools/P", "tenants/T/pools/-": only what is theirs; empty: everything.
  std::string pool;
  Qpn qpn;         // 0: all
  wire::Gid peer;  // zero: all
  port::CaptureConfig bounds;
};

// A worker's queues, by device: as they are, and with what captures put around them.
struct CaptureQueues {
  std::vector<port::PacketPort*> plain;
  std::vector<port::PacketPort*> recording;
};

class Captures {
 public:
  Captures(Services& services, AttachServer& attach) : services_(services), attach_(attach) {}

  // Before the first Start. The taps are the queues'; by worker.
  void SetQueues(port::CaptureTaps& taps, std::vector<CaptureQueues> queues);

  // started: later, when all workers record; or with why not (ENOENT: no such pool here, EBUSY: too
  // many captures, ENOTSUP: no queues). Then the sink gets the file.
  void Start(const CaptureOrder& order, std::shared_ptr<port::CaptureSink> sink,
             std::function<void(const Status&)> started);
  // Nobody reads it any more.
  void Abort(const std::shared_ptr<port::CaptureSink>& sink);
  // All; the sinks' threads have ended afterwards.
  void StopAll();

  void QpAdded(const std::string& pool, Qpn qpn);
  void QpRemoved(const std::string& pool, Qpn qpn);
  void PoolsChanged();

 private:
  struct Running {
    std::string pool;
    std::shared_ptr<port::CaptureSink> sink;  // empty: the place is free
    uint64_t number = 0;
  };

  std::vector<wire::Gid> AddressesOf(const std::string& scope);
  bool Exists(const std::string& scope);
  // A place for it; kCaptureTaps: none.
  size_t FreePlace(const std::string& pool) const;
  void UseQueues(bool recording, std::function<void()> done);
  void Ended(size_t place, uint64_t number);
  void Free(size_t place);

  Services& services_;
  AttachServer& attach_;
  port::CaptureTaps* taps_ = nullptr;
  std::vector<CaptureQueues> queues_;
  std::array<Running, port::kCaptureTaps> running_;
  uint64_t last_number_ = 0;
};

}  // namespace rocegw::session
