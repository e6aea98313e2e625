// SPDX-License-Identifier: Apache-2.0
// Registrations of a program, and the decision about each: move its pages onto memory that the
// daemon maps too, so that the daemon reads and writes them directly, or leave them for
// cross-process access, which is always correct. Pages move only if the gateway allows it and no
// effect is visible (docs/user/memory.md); only whole pages inside the registration, so that no
// other data in the same page is shared; and only while registered. Control path; any thread.
#pragma once

#include <cstdint>

#include "gateway/client/memory/interval_tree.h"
#include "gateway/client/session/session.h"

namespace rocegw::client {

struct Region;

// State of a registration; part of its memory region's object.
struct Registration : Interval {
  Session* session;
  bool written;    // the daemon may write to it
  Region* region;  // region of its pages, nullptr: none
  uint32_t kept;   // enum rocegw_kept: reason for no region
};

// Call before the daemon is asked to register [start, start + length).
void BeginRegistration(Session* session, uint64_t start, uint64_t length, bool written,
                       Registration* registration);
// Does the same for an on-demand registration. Its pages never move, since it must follow the
// program's mappings; and while it can write to other registrations' pages, these do not move
// either.
void ListRegistration(Session* session, uint64_t start, uint64_t length, bool written,
                      Registration* registration);
// Continues without the region, because the daemon refused it.
void LeaveRegion(Registration* registration);
// Call when the daemon has released the registration.
void EndRegistration(Registration* registration);

uint32_t RegionHandle(const Registration& registration);
uint64_t RegionOffset(const Registration& registration);

}  // namespace rocegw::client
