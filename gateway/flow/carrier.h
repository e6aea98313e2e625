// SPDX-License-Identifier: Apache-2.0
// Interface that a queue pair sends through when its peer sits behind another gateway: a reliable,
// unordered transport that many queue pairs share. The queue pair builds frames, and rebuilds them
// when they are lost. The carrier assigns PSNs, decides when frames may leave, and shares its
// window among the waiting queue pairs. Channels implement it. Belongs to the worker of its queue
// pairs, and outlives the queue pairs that are bound to it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gateway/base/ids.h"
#include "gateway/base/psn.h"
#include "gateway/base/time.h"
#include "gateway/flow/frame_ref.h"
#include "gateway/wire/datagram.h"

namespace rocegw::flow {

// Destination and header fields of a carrier's frames.
struct CarrierAddress {
  wire::Path path;
  Qpn channel;           // channel number at the peer
  uint16_t epoch = 0;    // low half of the peer's epoch
  uint8_t hint = 0;      // byte 4 of the BTH (wire/congestion_hint.h)
  uint8_t flags = 0;     // wire::FrameFlag bits to add to the next frame
  bool bundles = false;  // the peer takes several frames in one datagram
  uint32_t seal = 0;     // as in port::TxPacket

  // Writes the BTH of a frame and returns its length. `pad`: bytes behind the payload.
  size_t EncodeBth(Psn psn, uint32_t pad, uint8_t* out) const;
};

// Result of rebuilding a lost frame.
enum class Resend : uint8_t {
  kDone,
  kVoid,      // the frame is not needed any more: an empty frame takes its PSN
  kPortFull,  // the port has no buffer: ask again
};

// Member of a carrier's wait queue: a queue pair, or the staged carrier in front of a channel, and
// the tag of its tenant.
struct WindowWaiter {
  WorkerObject object;
  uint32_t tenant = 0;
};

// Entry of a queue pair in a carrier's wait queue; lives in the queue pair.
struct WaitEntry {
  bool waiting = false;
  int16_t credit = 0;  // bytes that it may still send before it must wait again
};

class Carrier {
 public:
  // Index of a channel as a staged carrier: none.
  static constexpr uint32_t kNotStaged = UINT32_MAX;

  // Returns the index in the worker's table of staged carriers; kNotStaged for a channel.
  virtual uint32_t staged_index() const { return kNotStaged; }
  // Valid from a successful MaySend until the frame sent then is acknowledged.
  virtual CarrierAddress address() const = 0;
  virtual const wire::Gid& peer() const = 0;
  virtual Qpn number() const = 0;  // channel number on this side
  // Returns the payload bytes that a frame may carry, whatever its header. It may exceed the path
  // MTU, which leaves space for native headers only.
  virtual uint32_t max_payload() const = 0;

  // Returns true if a frame with `bytes` of payload may leave now. If not, the queue pair is in the
  // wait queue, and the worker pumps it when its turn comes. The permission is used at once or not
  // at all.
  virtual bool MaySend(const WindowWaiter& waiter, WaitEntry& entry, uint32_t bytes,
                       TimePoint now) = 0;
  // Returns true if a frame without payload may leave now. For a closing queue pair: it bypasses
  // the wait queue and pacing.
  virtual bool MaySendLast(TimePoint now) = 0;
  // Records a frame that leaves now and returns its PSN.
  virtual Psn OnSent(const WindowWaiter& waiter, WaitEntry& entry, const FrameRef& frame,
                     uint32_t bytes, TimePoint now) = 0;
  // Returns true if the frame with that PSN and all before it are acknowledged, so none is rebuilt.
  virtual bool HasArrived(Psn psn) const = 0;

  // From now on the carrier reports each frame that arrives to its owner (channel/owner.h).
  virtual void ReportArrivals() = 0;

  // Returns the smoothed round trip; 0: unknown.
  virtual Duration round_trip() const { return {}; }

  // Count the uses of the carrier by queue pairs. An unused carrier may close.
  virtual void Hold() = 0;
  virtual void Release() = 0;

 protected:
  ~Carrier() = default;
};

}  // namespace rocegw::flow
