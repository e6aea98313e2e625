// SPDX-License-Identifier: Apache-2.0
// The objects that programs hold pointers to. Each begins with the public structure of libibverbs
// and is zero-filled when made; what the library needs follows. Some sizes and places are expected
// by libibverbs and its users beyond what the public headers say; they are noted at the member.
#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/client/device/later_verbs.h"
#include "gateway/client/memory/remap.h"
#include "gateway/client/rings/completion_rings.h"
#include "gateway/client/session/session.h"

namespace rocegw::client {

struct Device {
  ibv_device ibv;
  // Direct-verbs libraries of vendors look at a pointer that the real library keeps behind
  // ibv_device, to see whose device it is; zero means nobody's.
  uint8_t zero[512];
  __be64 guid;
  uint32_t index;  // at the daemon
};

struct Context {
  verbs_context verbs;  // programs hold &verbs.context
  Session* session;
  Device* device;
  uint32_t handle;
  uint32_t max_message;
  OwnDescriptor events;    // async_fd
  OwnDescriptor commands;  // cmd_fd
  bool placement;          // the device has FLUSH and ATOMIC WRITE
  bool fatal_reported;
};

struct Pd {
  ibv_pd ibv;         // ibv.handle is the daemon's
  Pd* protection;     // of a parent domain: whose handle it has; nullptr: it is none
  ibv_td* thread;     // of a parent domain, or nullptr
  uint32_t parents;   // parent domains of it
  uint32_t handles;   // address handles
  bool made_for_ids;  // by rdma_cm, for ids of programs that bring none
};

struct Mr {
  ibv_mr ibv;
  uint64_t tail;  // libibverbs keeps type and access flags behind ibv_mr
  Registration* registration;
  uint64_t iova;
  uint32_t access;  // as asked for
};

struct Channel {
  ibv_comp_channel ibv;
  OwnDescriptor events;  // ibv.fd
  uint32_t handle;
};

struct Cq {
  union {
    ibv_cq ibv;
    ibv_cq_ex ex;
  };
  CompletionRings rings;
  // With the calls of ibv_cq_ex: the completion that is being read, and whose turn it is.
  SpinLock polling;
  ibv_wc current;
  uint64_t current_ns;   // when it was made, CLOCK_MONOTONIC
  uint64_t wall_offset;  // from CLOCK_MONOTONIC to CLOCK_REALTIME
  uint64_t wall_last;    // the latest wall-clock time that the program was told
  bool wall_is_fresh;    // wall_offset was looked at since ibv_start_poll
  uint64_t id;
  uint32_t events_delivered;        // completion events given to the program; under the object lock
  uint32_t async_events_delivered;  // same
};

struct Xrcd {
  ibv_xrcd ibv;
  uint32_t handle;
};

struct Srq {
  ibv_srq ibv;
  SharedRing ring;
  // Of XRC: as whom the queue of its completions knows it, and where they go; else nullptr.
  QpRings* receiver;
  ibv_cq* cq;
  uint32_t number;
  uint64_t id;
  uint32_t events_delivered;  // under the object lock
};

struct SendBuilder;

struct Qp {
  union {
    ibv_qp ibv;
    ibv_qp_ex ex;
    LaterQpEx later;
  };
  uint32_t extended;     // libibverbs looks here to see whether it may use `ex`; 0: no
  SendBuilder* builder;  // of ibv_wr_*; nullptr: has none
  QpRings rings;
  ibv_qp_cap cap;
  uint64_t id;
  uint32_t events_delivered;  // async events; under the object lock
  bool signal_all;
  // As asked for (dv/rocegwdv.h); 0: those of verbs.
  uint32_t service_mode;
  uint32_t execution_order;
  uint32_t completion_order;
};

// The result of a call that returns the value of errno: kernel providers set errno as well.
inline int WithErrno(int error) {
  if (error != 0) errno = error;
  return error;
}

// For everything else the public structure is enough.
template <typename T>
T* MakeObject() {
  return static_cast<T*>(calloc(1, sizeof(T)));
}

int PollCq(ibv_cq* cq, int count, ibv_wc* wc);

// Every context has its operations filled in, ours with our functions.
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
