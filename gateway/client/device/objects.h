// SPDX-License-Identifier: Apache-2.0
// Objects to which programs hold pointers. Each begins with the public structure of libibverbs and
// is created zero-filled; the library's members follow. libibverbs and its users expect some sizes
// and offsets beyond the public headers; they are noted at the member.
#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/client/device/later_verbs.h"
#include "gateway/client/memory/dma_buf.h"
#include "gateway/client/memory/remap.h"
#include "gateway/client/rings/completion_rings.h"
#include "gateway/client/rings/spinlock.h"
#include "gateway/client/session/session.h"

namespace rocegw::client {

struct Device {
  ibv_device ibv;
  // Vendors' direct-verbs libraries read a pointer that the real library keeps behind ibv_device to
  // identify the vendor; zero means none.
  uint8_t zero[512];
  __be64 guid;
  uint32_t index;  // device number at the daemon
};

struct Context {
  verbs_context verbs;  // programs hold &verbs.context
  Session* session;
  Device* device;
  uint32_t handle;
  uint32_t max_message;
  OwnDescriptor events;    // identity of async_fd
  OwnDescriptor commands;  // identity of cmd_fd
  bool placement;          // the device has FLUSH and ATOMIC WRITE
  bool fatal_reported;
};

struct Pd {
  ibv_pd ibv;         // ibv.handle is the daemon's handle
  Pd* protection;     // parent domain: its protection domain; nullptr: no parent domain
  ibv_td* thread;     // parent domain: its thread domain, or nullptr
  uint32_t parents;   // number of its parent domains
  uint32_t handles;   // number of its address handles
  bool made_for_ids;  // created by rdma_cm for programs that pass none
};

struct Mr {
  ibv_mr ibv;
  uint64_t tail;  // libibverbs keeps type and access flags behind ibv_mr
  Registration* registration;
  uint64_t iova;
  uint32_t access;  // requested access
  DmaBufMapping dma_buf;
  uint32_t device_region;  // the daemon's handle of memory of a GPU; 0: it is other memory
};

struct Channel {
  ibv_comp_channel ibv;
  OwnDescriptor events;  // identity of ibv.fd
  uint32_t handle;
};

struct Cq {
  union {
    ibv_cq ibv;
    ibv_cq_ex ex;
  };
  CompletionRings rings;
  // State of the ibv_cq_ex calls: the completion that is being read, and the lock of its reader.
  SpinLock polling;
  ibv_wc current;
  uint64_t current_ns;   // creation time, CLOCK_MONOTONIC
  uint64_t wall_offset;  // from CLOCK_MONOTONIC to CLOCK_REALTIME
  uint64_t wall_last;    // latest wall-clock time returned to the program
  bool wall_is_fresh;    // wall_offset was refreshed since ibv_start_poll
  uint64_t id;
  uint32_t events_delivered;  // completion events given to the program; guarded by the object lock
  uint32_t async_events_delivered;  // same lock
};

struct Xrcd {
  ibv_xrcd ibv;
  uint32_t handle;
};

struct Srq {
  ibv_srq ibv;
  SharedRing ring;
  // XRC: entry of this queue in the rings of its completion queue; otherwise nullptr.
  QpRings* receiver;
  ibv_cq* cq;
  uint32_t number;
  uint64_t id;
  uint32_t events_delivered;  // guarded by the object lock
};

struct SendBuilder;

struct Qp {
  union {
    ibv_qp ibv;
    ibv_qp_ex ex;
    LaterQpEx later;
  };
  uint32_t extended;     // nonzero: libibverbs may use `ex`
  SendBuilder* builder;  // state of ibv_wr_*; nullptr: none
  QpRings rings;
  // Guards `moves` and the state, which is in `ibv` for the program and in both rings for their
  // calls. Only SetState and LearnState (queues/queue_pair.h) write the state.
  SpinLock state_lock;
  uint32_t moves;  // number of changes of the state that this library made or learned
  ibv_qp_cap cap;
  uint64_t id;
  uint32_t events_delivered;  // async events; guarded by the object lock
  bool signal_all;
  // Requested values (dv/rocegwdv.h); 0: those of verbs.
  uint32_t service_mode;
  uint32_t execution_order;
  uint32_t completion_order;
};

// Returns the error of a call that returns an errno value; sets errno too, as kernel providers do.
inline int WithErrno(int error) {
  if (error != 0) errno = error;
  return error;
}

// For all other types the public structure suffices.
template <typename T>
T* MakeObject() {
  return static_cast<T*>(calloc(1, sizeof(T)));
}

int PollCq(ibv_cq* cq, int count, ibv_wc* wc);

// Recognises our contexts: every context has its operations filled in, ours with our functions.
inline bool IsOurs(const ibv_context* context) { return context->ops.poll_cq == &PollCq; }

inline Context* FromIbv(ibv_context* context) {
  return reinterpret_cast<Context*>(reinterpret_cast<uint8_t*>(context) -
                                    offsetof(verbs_context, context));
}
inline Pd* FromIbv(ibv_pd* pd) { return reinterpret_cast<Pd*>(pd); }
inline Mr* FromIbv(ibv_mr* mr) { return reinterpret_cast<Mr*>(mr); }
inline Channel* FromIbv(ibv_comp_channel* channel) { return reinterpret_cast<Channel*>(channel); }
inline Cq* FromIbv(ibv_cq* cq) { return reinterpret_cast<Cq*>(cq); }
inline Srq* FromIbv(ibv_srq* srq) { return reinterpret_cast<Srq*>(srq); }
inline Xrcd* FromIbv(ibv_xrcd* xrcd) { return reinterpret_cast<Xrcd*>(xrcd); }
inline Qp* FromIbv(ibv_qp* qp) { return reinterpret_cast<Qp*>(qp); }

inline Session* SessionOf(ibv_context* context) { return FromIbv(context)->session; }

}  // namespace rocegw::client
