// SPDX-License-Identifier: Apache-2.0
// What a connected queue pair sends through when its peer sits behind another gateway: a reliable,
// unordered transport that many queue pairs share. The queue pair builds frames and builds them
// again when they are lost; the carrier gives them PSNs, decides when they may leave, and divides
// its room among those that wait. Implemented by channels; belongs to the worker of its queue
// pairs, and outlives what is bound to it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gateway/base/ids.h"
#include "gateway/base/psn.h"
#include "gateway/base/time.h"
#include "gateway/flow/frame_ref.h"
#include "gateway/wire/datagram.h"

namespace rocegw::flow {

// Where its frames go.
struct CarrierAddress {
  wire::Path path;
  Qpn channel;         // the peer's
  uint16_t epoch = 0;  // low half of the peer's epoch
  uint8_t hint = 0;    // byte 4 of their BTH (wire/congestion_hint.h)
  uint8_t flags = 0;   // wire::FrameFlag bits that the next one has on top

  // The BTH of a frame; `pad`: bytes behind its payload. Its length.
  size_t EncodeBth(Psn psn, uint32_t pad, uint8_t* out) const;
};

// What became of a frame that was to be built again.
enum class Resend : uint8_t {
  kDone,
  kVoid,      // nobody waits for it: an empty frame takes its place
  kPortFull,  // ask again
};

// Who stands in line: a queue pair of a tenant (by its tag).
struct LineMember {
  SlotHandle qp;
  uint32_t tenant = 0;
};

// A queue pair's place among those who wait for the same carrier; lives in the queue pair.
struct LinePlace {
  bool waiting = false;
  int16_t credit = 0;  // bytes it may send before it must stand in line again
};

class Carrier {
 public:
  // From a yes of MaySend until what was sent then is acknowledged.
  virtual CarrierAddress address() const = 0;
  virtual const wire::Gid& peer() const = 0;
  virtual Qpn number() const = 0;  // our own
  // Payload bytes of a frame that fits the port, whatever its header: frames need not be as long as
  // a path MTU, which leaves room for native headers only.
  virtual uint32_t max_payload() const = 0;

  // May a frame with so many payload bytes of that queue pair leave now? After a no the queue pair
  // stands in line; the worker pumps it when its turn has come. A yes is used at once or not at
  // all.
  virtual bool MaySend(const LineMember& who, LinePlace& place, uint32_t bytes, TimePoint now) = 0;
  // The same of a frame without payload, for who ends now: it stands in no line, and keeps no pace.
  virtual bool MaySendLast(TimePoint now) = 0;
  // Enters a frame that leaves now; its PSN.
  virtual Psn OnSent(const LineMember& who, LinePlace& place, const FrameRef& frame, uint32_t bytes,
                     TimePoint now) = 0;
  // Of one that was sent: it and all before it are acknowledged, so that none is built again.
  virtual bool HasArrived(Psn psn) const = 0;

  // From now on its owner is told of each frame that arrives (channel/owner.h).
  virtual void TellArrivals() = 0;

  // Smoothed; 0: not known.
  virtual Duration round_trip() const { return {}; }

  // A half of a queue pair begins or ends to use it. One that nobody uses may close.
  virtual void Hold() = 0;
  virtual void Release() = 0;

 protected:
  ~Carrier() = default;
};

}  // namespace rocegw::flow
