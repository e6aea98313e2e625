// SPDX-License-Identifier: Apache-2.0
// Conversion of the daemon's description of a new QP to pointers: fills QpRings and checks that
// each location is large enough. Control path. EPROTO if one is not.
#pragma once

#include "gateway/abi/rocegw_abi.h"
#include "gateway/client/rings/completion_rings.h"

namespace rocegw::client {

// Returns the memory of a location of at least `need` bytes; nullptr if there is none.
struct LocationResolver {
  void* (*resolve)(void* context, const rocegw_location& location, uint64_t need);
  void* context;
  void* operator()(const rocegw_location& location, uint64_t need) const {
    return location.length < need ? nullptr : resolve(context, location, need);
  }
};

struct QpMapping {
  const rocegw_worker_line* line;
  int wake_fd;
  uint32_t* wake_lost;
  const KeyTable* keys;
  uint32_t pd;
  uint32_t qp_type;
  uint32_t max_message;
  bool placement;
  bool operates;
  bool signal_all;
};

int MapSharedQueue(const rocegw_srq_reply& reply, const LocationResolver& resolver,
                   SharedQueue* queue);
int MapSharedRing(const rocegw_srq_reply& reply, const LocationResolver& resolver,
                  SharedRing* ring);
int MapQpRings(const rocegw_qp_reply& reply, const LocationResolver& resolver,
               const QpMapping& mapping, QpRings* rings);

}  // namespace rocegw::client
