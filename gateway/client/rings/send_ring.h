// SPDX-License-Identifier: Apache-2.0
// Producer side of a send queue: converts ibv_send_wr to WQEs in shared memory. Any thread; one
// post at a time per queue. A short payload is copied beside the WQE: always for IBV_SEND_INLINE,
// else if the local keys are valid. The daemon finds invalid keys and reports them in the
// completion, as hardware does. Errors are the errno values of other devices' post_send: ENOMEM
// queue full, EINVAL invalid request.
#pragma once

#include <infiniband/verbs.h>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/client/rings/doorbell.h"
#include "gateway/client/rings/key_table.h"
#include "gateway/client/rings/shared_word.h"
#include "gateway/client/rings/spinlock.h"

namespace rocegw::client {

struct SendRing {
  SpinLock lock;
  uint32_t producer;       // next index, free running
  uint32_t released_seen;  // copy of status->sq_released
  uint32_t mask;           // entries - 1
  uint32_t stride;
  uint8_t* slots;
  uint8_t* payload;
  uint32_t payload_stride;
  uint32_t max_sge;
  uint32_t max_inline;
  uint32_t max_message;
  rocegw_qp_control* control;
  const rocegw_qp_status* status;
  Doorbell bell;
  const KeyTable* keys;
  uint32_t pd;
  uint32_t qkey;   // own Q_Key; replaces a WR's Q_Key that has the top bit set
  uint32_t state;  // enum ibv_qp_state as the library last set it
  uint8_t qp_type;
  bool signal_all;
  bool placement;        // RC with FLUSH and ATOMIC WRITE
  bool operates;         // the daemon knows the atomics of rocegwdv_wr_opcode
  uint32_t order_flags;  // enum rocegw_wqe_flags: order of requests without one of their own
};

// List under construction: locks the queue until destroyed, then notifies the daemon if something
// was added.
class SendPost {
 public:
  explicit SendPost(SendRing& ring);
  ~SendPost();
  SendPost(const SendPost&) = delete;
  SendPost& operator=(const SendPost&) = delete;

  // Returns nonzero if the queue accepts nothing.
  int error() const;
  // Adds a request. `flags`: enum rocegw_wqe_flags beyond those of the request; `peer`: handle of
  // an endpoint's peer. 0 or errno.
  int Add(const ibv_send_wr& wr, uint32_t flags, uint32_t peer = 0);
  // Adds a FLUSH, which ibv_send_wr cannot describe: `wr` has its wr_id, flags, address and key.
  // `feth`: placement type and selectivity level << 4.
  int AddFlush(const ibv_send_wr& wr, uint32_t flags, uint64_t length, uint32_t feth);
  // Discards what was added.
  void Forget();

 private:
  SendRing& ring_;
  const uint32_t first_;
};

// Prefetches the slot that is written some posts later: the daemon has read it in the last round.
inline void FetchLaterSlot(const SendRing& ring) {
  constexpr uint32_t kSlotsAhead = 16;
  FetchForWriting(ring.slots + size_t{(ring.producer + kSlotsAhead) & ring.mask} * ring.stride);
}

// Posts the list. On an error *bad is the first request that was not posted; all before it were.
int PostSend(SendRing& ring, ibv_send_wr* wr, ibv_send_wr** bad);

}  // namespace rocegw::client
